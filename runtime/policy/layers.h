// The layers of isolation by name, and what can be said of each. Stage: policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sbx::policy {

// X(enumerator, name, required)
#define SBX_LAYERS(X)                           \
  X(kUserNamespace, "user_namespace", true)     \
  X(kPidNamespace, "pid_namespace", true)       \
  X(kMountNamespace, "mount_namespace", true)   \
  X(kNetNamespace, "net_namespace", true)       \
  X(kIpcNamespace, "ipc_namespace", true)       \
  X(kUtsNamespace, "uts_namespace", true)       \
  X(kCgroupNamespace, "cgroup_namespace", true) \
  X(kRootfs, "rootfs", true)                    \
  X(kProc, "proc", true)                        \
  X(kCgroup, "cgroup", true)                    \
  X(kSeccomp, "seccomp", true)                  \
  X(kCapabilities, "capabilities", true)        \
  X(kNoNewPrivs, "no_new_privs", true)          \
  X(kRlimits, "rlimits", true)                  \
  X(kUidSeparation, "uid_separation", false)    \
  X(kLandlock, "landlock", false)               \
  X(kTimeNamespace, "time_namespace", false)    \
  X(kCpuset, "cpuset", false)

enum class Layer : std::uint32_t {
#define SBX_LAYER_ENUMERATOR(enumerator, name, required) enumerator,
  SBX_LAYERS(SBX_LAYER_ENUMERATOR)
#undef SBX_LAYER_ENUMERATOR
      kCount
};

// A set of layers; bit n is Layer n.
using LayerMask = std::uint32_t;
[[nodiscard]] constexpr LayerMask layer_bit(Layer layer) {
  return LayerMask{1} << static_cast<std::uint32_t>(layer);
}

[[nodiscard]] constexpr std::string_view layer_name(Layer layer) {
  constexpr std::string_view kNames[] = {
#define SBX_LAYER_NAME(enumerator, name, required) name,
      SBX_LAYERS(SBX_LAYER_NAME)
#undef SBX_LAYER_NAME
  };
  return kNames[static_cast<std::uint32_t>(layer)];
}

[[nodiscard]] constexpr bool layer_required(Layer layer) {
  constexpr bool kRequired[] = {
#define SBX_LAYER_REQUIRED(enumerator, name, required) required,
      SBX_LAYERS(SBX_LAYER_REQUIRED)
#undef SBX_LAYER_REQUIRED
  };
  return kRequired[static_cast<std::uint32_t>(layer)];
}

// Without these a program would be in the host's own view: nothing excuses their absence.
[[nodiscard]] constexpr bool layer_is_indispensable(Layer layer) {
  return layer == Layer::kMountNamespace || layer == Layer::kPidNamespace ||
         layer == Layer::kRootfs;
}

[[nodiscard]] constexpr std::optional<Layer> layer_from_name(std::string_view name) {
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Layer::kCount); ++i) {
    if (layer_name(static_cast<Layer>(i)) == name) return static_cast<Layer>(i);
  }
  return std::nullopt;
}

enum class LayerState { kHeld, kDegraded, kMissing, kOff };

[[nodiscard]] constexpr std::string_view layer_state_name(LayerState state) {
  switch (state) {
    case LayerState::kHeld:
      return "held";
    case LayerState::kDegraded:
      return "degraded";
    case LayerState::kOff:
      return "off";
    case LayerState::kMissing:
      break;
  }
  return "missing";
}

struct LayerReport {
  std::string name;
  LayerState state = LayerState::kHeld;
  std::string detail;
};

}  // namespace sbx::policy
