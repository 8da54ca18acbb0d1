// OwnGround: where the sandboxes of one test live, and what they left there.
//
// Unlike LeakCheck it sees what this process made and nothing else, so that other sandboxes on the
// host neither disturb it nor clean up for it: as root, a runtime directory and a cgroup subtree of
// its own (an ordinary user has only what an administrator made for him). Meanwhile this process is
// the reaper of its descendants, so that an orphan shows as a child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "runtime/policy/config.h"
#include "tests/support/leaks.h"
#include "tests/support/process.h"

namespace sbx::test {

class OwnGround {
 public:
  OwnGround();
  OwnGround(const OwnGround&) = delete;
  OwnGround& operator=(const OwnGround&) = delete;
  ~OwnGround();

  [[nodiscard]] const policy::RuntimeConfig& config() const { return config_; }
  // What is there and was not at the start, each as a line: children (`spawner`, when not 0, may
  // live), mounts, descriptors (unless a spawner may live), groups, dead records. Waits for them to
  // go.
  [[nodiscard]] Things leaked(pid_t spawner = 0,
                              std::chrono::seconds patience = std::chrono::seconds(5)) const;

 private:
  [[nodiscard]] Things look(pid_t spawner) const;

  int was_reaper_ = 0;
  TemporaryDirectory directory_;
  policy::RuntimeConfig config_;
  Things before_;
};

}  // namespace sbx::test
