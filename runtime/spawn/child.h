// Child: everything of the kernel's that belongs to one run in flight. Stage: spawn.
//
// The only noun that owns kernel objects. Owned by the run; its destructor closes the lifeline,
// which ends sbx-init and with it every process inside, whatever state the run was in.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/cgroup/driver.h"
#include "runtime/plan/plan.h"
#include "runtime/spawn/records.h"
#include "runtime/spawn/spawner.h"

namespace sbx::spawn {

struct Child {
  UniqueFd control;                      // answers of the spawner, then the collection
  UniqueFd report;                       // read end of init's records
  UniqueFd lifeline;                     // write end; closing it ends the run
  UniqueFd fill;                         // write end, or none
  UniqueFd in;                           // write end of the payload's stdin, or none
  UniqueFd out, err;                     // read ends
  pid_t spawner = -1;                    // its process
  const bool* spawner_silent = nullptr;  // borrowed: whether it is known not to answer
  cgroup::CgroupRun* cgroup = nullptr;   // borrowed from the run; null without a cgroup
  std::chrono::steady_clock::time_point launched;
};

// Makes pipes and the plan's block and asks the spawner for a child. Does not wait for it. All our
// ends are non-blocking. `with_stdin`: a pipe, else /dev/null.
[[nodiscard]] Result<Child> spawn_child(Spawner& spawner, const plan::Plan& plan,
                                        plan::LaunchFacts facts, cgroup::CgroupRun* cgroup,
                                        bool with_stdin);

}  // namespace sbx::spawn
