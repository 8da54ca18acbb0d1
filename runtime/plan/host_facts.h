// HostFacts: what this machine and this caller have, as far as a plan depends on it. Stage: plan.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/image.h"
#include "runtime/policy/layers.h"

namespace sbx::plan {

// How the outer user namespace gets its ids.
enum class IdMode {
  kRange,        // root: 65536 ids from uid_base
  kSubordinate,  // a user with subordinate ids and newuidmap: 1 + n
  kSingle,       // a user's own id alone: payload and init share it
};

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};  // RLIM_INFINITY

struct HostFacts {
  bool root = false;
  IdMode ids = IdMode::kSingle;
  std::uint32_t id_count = 1;  // ids in the outer namespace, 0 included
  std::uint32_t host_uid = 0;  // kRange: uid_base; else the caller's uid
  std::uint32_t host_gid = 0;
  std::uint32_t sub_uid = 0;  // kSubordinate: first subordinate ids
  std::uint32_t sub_gid = 0;
  std::string id_detail;  // for the uid_separation layer: how, or why not
  std::uint32_t cpus = 1;
  std::uint64_t memory = 0;  // bytes
  std::uint64_t hard_nofile = 0, hard_fsize = 0, hard_memlock = 0, hard_msgqueue = 0,
                hard_sigpending = 0;  // rlimits
  std::uint64_t hard_core = 1;
  // A handler of the host's takes the cores (a core_pattern that is a pipe), whatever their limit.
  // Looked up only where `hard_core` is 0: elsewhere the limit of 1 that a plan sets stops it.
  bool core_is_piped = false;
  // What no plan sets, and the payload has from whoever started us.
  std::uint64_t hard_cpu = kNoLimit, hard_as = kNoLimit, hard_data = kNoLimit,
                hard_nproc = kNoLimit, hard_stack = kNoLimit;
  Image image;
  std::string cgroup_detail;  // driver and controllers; empty: no cgroup is to be had
  bool cgroup_v2 = false;
  bool swap_controlled = false;
  policy::LayerMask missing = 0;  // namespaces this kernel does not have
};

// Reads the machine (not the cgroup members, which the driver fills, nor the image). Which
// namespaces the kernel lacks is looked up only when the caller could do without one
// (`allow_missing`): without that, their creation is the test.
[[nodiscard]] HostFacts read_host_facts(const policy::RuntimeConfig& config,
                                        policy::LayerMask allow_missing);

// What every run is given in /dev.
struct Device {
  const char* name;
  unsigned major, minor;
};
inline constexpr Device kGivenDevices[] = {
    {"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}};

// kHost, with the fix, where /dev lacks one of them, or has something else under its name.
// SECURITY: a plain file there would be read by every program, in the place of what is masked too.
[[nodiscard]] Result<void> check_devices();

// The part of them that bounds a run's limits.
[[nodiscard]] policy::HostBounds bounds_of_host(const HostFacts& facts);

// For whom a hard limit of 0 on cores is not enough.
inline constexpr const char* kCoreFix =
    "start it with a hard core limit of 1 or more (ulimit -c 1; LimitCORE=1 in a unit)";

// Reads kernel.core_pattern; one that cannot be read is taken for a pipe.
[[nodiscard]] bool core_pattern_is_piped();

// The facts of a service that root starts and that becomes this user: he is the outer root, and the
// ids of runs are the 65535 behind root's own range.
void serve_as(HostFacts& facts, std::uint32_t uid, std::uint32_t gid,
              const policy::RuntimeConfig& config);

}  // namespace sbx::plan
