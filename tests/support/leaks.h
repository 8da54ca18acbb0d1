// LeakCheck: nothing of a run may outlive it. Takes what is there at its birth and compares.
//
// Counts only what is ours, so that other programs of the machine do not disturb it: processes
// named sbx-* and those inside, the namespaces that these live in or hold, groups below our
// subtrees, our mounts, descriptors of this process, entries of the places where we keep files, and
// keys of the users that runs are.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

namespace sbx::test {

// Each thing as one line: "process 123 sbx-init", "cgroup /sys/fs/cgroup/memory/sbx/…", ….
using Things = std::set<std::string>;

// Everything of ours that is on this host now. `uid`: the user whose runtime directory and groups
// count too.
[[nodiscard]] Things snapshot(unsigned uid);

class LeakCheck {
 public:
  explicit LeakCheck(unsigned uid) : uid_(uid), before_(snapshot(uid)) {}
  // What is there now and was not then; waits up to `patience` for it to go: net namespaces and
  // groups die a little later than their processes, and one whose file system had a million files
  // is busy with them for some seconds.
  [[nodiscard]] Things leaked(std::chrono::seconds patience = std::chrono::seconds(30)) const;

 private:
  unsigned uid_;
  Things before_;
};

// A test that leaves nothing behind, or fails.
class LeakFreeTest : public ::testing::Test {
 protected:
  LeakFreeTest();
  void TearDown() override;

 private:
  LeakCheck check_;
};

[[nodiscard]] std::string to_text(const Things& things);

}  // namespace sbx::test
