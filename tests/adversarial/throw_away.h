// The control outside of any sandbox: a program run as nobody in particular, in namespaces of its
// own and a group with limits, so that what an attack does there is done to nothing else.
//
// As root the process first becomes a user that nobody is; in its own user namespace it is root,
// alone. New pid, mount, net, ipc and uts namespaces, with a /proc of its own. Killed and reaped,
// with all its descendants, at the latest after `patience`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "tests/integration/own_ground.h"

namespace sbx::test {

struct ThrowAwayLimits {
  std::uint64_t memory = 64ULL << 20;
  std::uint32_t pids = 64;
  std::chrono::seconds patience{30};
};

struct ThrownAway {
  int status = -1;         // as waitpid(2) gives it
  bool timed_out = false;  // it was killed by us
  std::string out;         // what it wrote to stdout, stderr beside it
};

// `program`: a static executable on the host. An error when the place could not be made: a control
// that was not run.
[[nodiscard]] Result<ThrownAway> run_thrown_away(const OwnGround& ground,
                                                 const std::string& program,
                                                 const std::vector<std::string>& arguments,
                                                 const ThrowAwayLimits& limits = {});

}  // namespace sbx::test
