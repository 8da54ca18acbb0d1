// DriverTest: a driver of this host in a subtree of this test program's own, which must be empty
// again at the end of each test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cgroup/driver.h"

namespace sbx::cgroup::test {

// "sbx-test-<pid>"
[[nodiscard]] std::string test_parent();

// The directories named `name` at the top of every cgroup hierarchy of this host, present or not.
[[nodiscard]] std::vector<std::string> directories_named(const std::string& name);

// Removes them; returns those that would not go.
[[nodiscard]] std::vector<std::string> remove_directories_named(const std::string& name);

class DriverTest : public ::testing::Test {
 protected:
  // Skips where this caller can have no groups. A test of one version sets `needed`.
  explicit DriverTest(std::string needed = {}) : needed_(std::move(needed)) {}
  void SetUp() override;
  void TearDown() override;

  // Fails the test when it cannot be made.
  [[nodiscard]] std::unique_ptr<CgroupRun> make_run(const std::string& record,
                                                    const RunLimits& limits) const;
  // Another driver over the same subtree, as a later process would have it.
  [[nodiscard]] std::unique_ptr<Driver> make_driver(uid_t owner) const;

  std::unique_ptr<Driver> driver_;

 private:
  std::string needed_;
};

inline constexpr RunLimits kDefaultLimits{256U << 20, 500, 64};

}  // namespace sbx::cgroup::test
