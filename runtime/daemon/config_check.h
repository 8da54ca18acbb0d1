// What is wrong with a configuration although each of its values may be: values that contradict one
// another, and what this host does not have. Stage: daemon, start-up and --check-config, which say
// the same of the same file. Each error and warning begins with file, line and key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/daemon/config.h"
#include "runtime/policy/config.h"

namespace sbx::daemon {

// The part of the parser that sees the whole. Defaults give way to what is written, and what is
// written contradicts nothing: else kInvalid. Pure.
[[nodiscard]] Result<void> settle_whole(DaemonConfig& config);

// What the configuration is held against.
struct HostSide {
  bool root = false;              // it is root who starts it, and becomes `user`
  std::uint64_t memory = 0;       // bytes that the host, or the unit, has
  std::uint64_t descriptors = 0;  // RLIMIT_NOFILE, hard
};
[[nodiscard]] HostSide this_host();

// kHost for a user or an image that is not there (kInvalid for a user that is root, or no image's
// name). What may work all the same comes back as warnings: a budget above the host's memory
// (limits are seldom used up), a user who would not be needed now, and numbers of runs,
// connections and sessions that the descriptors are not enough for, which are lowered, and with
// them the files that one run may give out. Reads the host's users and images.
[[nodiscard]] Result<std::vector<std::string>> fit_host(DaemonConfig& config,
                                                        const policy::RuntimeConfig& runtime,
                                                        const HostSide& host);

// kHost where sessions of an earlier start, which `sessions.max` does not bind, would take the
// descriptors of what else is allowed. `config` is fitted; `descriptors` as above. Pure.
[[nodiscard]] Result<void> check_stored(const DaemonConfig& config, std::uint64_t stored,
                                        std::uint64_t descriptors);

// `error` as one about that key.
[[nodiscard]] Error at_key(const DaemonConfig& config, std::string_view path, Error error);

// A fix of a missing image in the words of sbxd's configuration; any other as it is.
[[nodiscard]] std::string fix_by_config(std::string fix);

}  // namespace sbx::daemon
