// Which attacks of the catalogue each layer stops by itself.
//
// Every attack is made in a box without any layer, then in boxes with one layer each, then in boxes
// without one layer each. A layer stops an attack by itself when the attack gets through in the
// bare box and does not with this layer alone. What does not get through in the bare box either,
// and does outside, is stopped by what is never off: the outer user namespace, the pid and the
// mount namespace.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/selftest_ground.h"
#include "tests/adversarial/arena.h"

namespace sbx::test {

inline constexpr std::string_view kNeverOff = "never off";

struct MatrixRow {
  const cli::AttackCase* attack = nullptr;
  cli::CaseState state = cli::CaseState::kFail;  // with all layers
  std::vector<std::string> alone;  // the layers that stop it by themselves, kNeverOff among them
  std::vector<std::string>
      needed;  // the layers without which it gets through although all others hold
};

// Call from a process whose net and ipc namespaces are its own: boxes without these layers have the
// caller's.
[[nodiscard]] std::vector<MatrixRow> make_matrix(Arena& arena, const cli::ControlGround& ground);

}  // namespace sbx::test
