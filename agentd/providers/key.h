// Where the provider's key comes from. At start-up; blocking.
#pragma once

#include <string>

#include "agentd/redact/secret.h"
#include "runtime/base/result.h"

namespace agentd::providers {

// At most one is set. None: no key.
struct KeySource {
  std::string file{};         // a path
  std::string credential{};   // of systemd: a name below $CREDENTIALS_DIRECTORY
  std::string environment{};  // the name of a variable; it is removed from ours
};
[[nodiscard]] inline bool is_set(const KeySource& source) {
  return !source.file.empty() || !source.credential.empty() || !source.environment.empty();
}

// Without the line end. kHost when it is not there, kInvalid when it can be none: empty, several
// lines, over 4 KiB, or in a file that others may read. No error quotes it, nor a source that may
// be the key itself: a path that leads nowhere, a name like none of a variable.
[[nodiscard]] sbx::Result<redact::Secret> load_key(const KeySource& source);

}  // namespace agentd::providers
