// The ordered steps of sbx-init and of the payload before its exec. Stage: plan.
//
// One list for everybody: the child reports a failed step by number, the supervisor prints its
// name, fault-injection tests make each one fail. Freestanding: used inside sbx-init.
#pragma once

#include <cstdint>

namespace sbx::plan {

// X(enumerator, name, layer): in the order in which they are walked. The layer is the one that a
// failure leaves without hold ("" for machinery that belongs to none).
#define SBX_STEPS(X)                                                    \
  /* pid 1, sbx-init */                                                 \
  X(kReadPlan, "read_plan", "")                                         \
  X(kJoinCpuCgroup, "join_cpu_cgroup", "cgroup")                        \
  X(kSession, "session", "")                                            \
  X(kParentDeath, "parent_death", "")                                   \
  X(kNotDumpable, "not_dumpable", "")                                   \
  X(kLifeline, "lifeline", "")                                          \
  X(kNetNamespace, "net_namespace", "net_namespace")                    \
  X(kHostname, "hostname", "uts_namespace")                             \
  X(kPrivateMounts, "private_mounts", "mount_namespace")                \
  X(kRootfs, "rootfs", "rootfs")                                        \
  X(kHostFiles, "host_files", "rootfs")                                 \
  X(kTmpfs, "tmpfs", "rootfs")                                          \
  X(kDevices, "devices", "rootfs")                                      \
  X(kProc, "proc", "proc")                                              \
  X(kPivot, "pivot_root", "rootfs")                                     \
  X(kReadOnlyProc, "read_only_proc", "proc")                            \
  X(kMasks, "masks", "proc")                                            \
  X(kFill, "fill", "")                                                  \
  X(kReadOnlyInputs, "read_only_inputs", "rootfs")                      \
  X(kTimeNamespace, "time_namespace", "time_namespace")                 \
  X(kSignals, "signals", "")                                            \
  X(kStartPayload, "start_payload", "")                                 \
  X(kDropInit, "drop_init", "capabilities")                             \
  /* the payload, between its clone and its exec */                     \
  X(kJoinCgroup, "join_cgroup", "cgroup")                               \
  X(kCgroupNamespace, "cgroup_namespace", "cgroup_namespace")           \
  X(kGroups, "groups", "uid_separation")                                \
  X(kIdentity, "identity", "uid_separation")                            \
  X(kKeyring, "keyring", "")                                            \
  X(kUserNamespace, "user_namespace", "user_namespace")                 \
  X(kIdMaps, "id_maps", "user_namespace")                               \
  X(kNoMoreUserNamespaces, "no_more_user_namespaces", "user_namespace") \
  X(kUserLimits, "user_limits", "user_namespace")                       \
  X(kPayloadParentDeath, "payload_parent_death", "")                    \
  X(kWorkDirectory, "work_directory", "")                               \
  X(kAffinity, "affinity", "cpuset")                                    \
  X(kBoundingSet, "bounding_set", "capabilities")                       \
  X(kCapabilities, "capabilities", "capabilities")                      \
  X(kRlimits, "rlimits", "rlimits")                                     \
  X(kNoNewPrivs, "no_new_privs", "no_new_privs")                        \
  X(kLandlock, "landlock", "landlock")                                  \
  X(kSignalMask, "signal_mask", "")                                     \
  X(kSeccomp, "seccomp", "seccomp")                                     \
  X(kCloseDescriptors, "close_descriptors", "")                         \
  X(kExec, "exec", "")                                                  \
  /* facts, reported by init (record kind 6) */                         \
  X(kFactStorage, "storage", "")                                        \
  X(kFactNetwork, "network", "")                                        \
  X(kFactBackground, "background", "")                                  \
  X(kFactUnlisted, "unlisted", "")                                      \
  X(kFactRecordLocks, "record_locks", "")

enum class Step : std::uint32_t {
#define SBX_STEP_ENUMERATOR(enumerator, name, layer) enumerator,
  SBX_STEPS(SBX_STEP_ENUMERATOR)
#undef SBX_STEP_ENUMERATOR
      kCount
};
static_assert(static_cast<std::uint32_t>(Step::kCount) <= 64, "a set of steps is a 64-bit mask");

using StepMask = std::uint64_t;
[[nodiscard]] constexpr StepMask step_bit(Step step) {
  return StepMask{1} << static_cast<std::uint32_t>(step);
}

[[nodiscard]] constexpr const char* step_name(Step step) {
  constexpr const char* kNames[] = {
#define SBX_STEP_NAME(enumerator, name, layer) name,
      SBX_STEPS(SBX_STEP_NAME)
#undef SBX_STEP_NAME
  };
  return step < Step::kCount ? kNames[static_cast<std::uint32_t>(step)] : "unknown";
}

// The layer's contract name, or "".
[[nodiscard]] constexpr const char* step_layer(Step step) {
  constexpr const char* kLayers[] = {
#define SBX_STEP_LAYER(enumerator, name, layer) layer,
      SBX_STEPS(SBX_STEP_LAYER)
#undef SBX_STEP_LAYER
  };
  return step < Step::kCount ? kLayers[static_cast<std::uint32_t>(step)] : "";
}

}  // namespace sbx::plan
