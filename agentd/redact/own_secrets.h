// The daemon's own secrets, found in the forms that a program could print them in. Internal to
// redact/.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/redact/secret.h"

namespace agentd::redact {

// SECURITY: covers what a common function makes of a secret: itself, base64 and base64url at any
// offset in a longer text, hex in any case, percent-encoding and \x, \u escapes of some or all
// bytes; base64 and hex also when wrapped into lines, hex with blanks or colons between bytes. A
// program that wants to hide a secret from this can (by reversing it, say): agentd gives it none to
// hide.
class OwnSecrets {
 public:
  explicit OwnSecrets(const std::vector<Secret>& secrets);

  // The length of what starts at `at`; 0 for nothing.
  [[nodiscard]] std::size_t match_at(std::string_view text, std::size_t at) const;
  [[nodiscard]] bool empty() const { return plain_.empty(); }
  [[nodiscard]] std::size_t longest() const;  // as it is
  // True when `c` can be the first byte of what match_at() finds: a quick filter.
  [[nodiscard]] bool may_start(char c) const { return first_.test(static_cast<unsigned char>(c)); }

 private:
  std::vector<Secret> plain_;
  std::vector<Secret> base64_;  // the characters that do not depend on what stands around
  std::vector<Secret> hex_;     // in lower case
  std::bitset<256> first_;
};

}  // namespace agentd::redact
