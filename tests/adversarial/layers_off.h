// Layers of isolation switched off, one by one or all but one, as one run's Weakening.
//
// pid_namespace and mount_namespace are never off: sbx-init is made of them, and without them its
// end would not be the payload's. What they stop is seen where everything else is off.
#pragma once

#include <vector>

#include "tests/integration/breakable_sandbox.h"

namespace sbx::test {

// The layers that can be switched off, in the order of layers.h.
[[nodiscard]] const std::vector<policy::Layer>& switchable_layers();

// A run without these. Without no_new_privs the kernel takes a filter or a ruleset only from a
// process with capabilities, so these are then kept too.
[[nodiscard]] Weakening without(policy::LayerMask layers);
[[nodiscard]] inline Weakening without(policy::Layer layer) {
  return without(policy::layer_bit(layer));
}
// A run with this one alone (and the two that are never off).
[[nodiscard]] Weakening only(policy::Layer layer);
// A run with none.
[[nodiscard]] Weakening bare();

}  // namespace sbx::test
