#include "tests/unit/cgroup/fixture.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/cgroup/hierarchy.h"

namespace sbx::cgroup::test {

std::string test_parent() {
  return "sbx-test-" + std::to_string(::getpid());
}

std::vector<std::string> directories_named(const std::string& name) {
  std::vector<std::string> paths;
  const auto hierarchies = discover();
  if (!hierarchies) return paths;
  for (const auto* mounts : {&hierarchies->v1, &hierarchies->v2}) {
    for (const Mount& mount : *mounts) paths.push_back(mount.path + "/" + name);
  }
  return paths;
}

std::vector<std::string> remove_directories_named(const std::string& name) {
  std::vector<std::string> left;
  for (const std::string& path : directories_named(name)) {
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT) left.push_back(path);
  }
  return left;
}

namespace {

DriverOptions options_for(uid_t owner_uid, gid_t owner_gid) {
  DriverOptions options;
  options.parent = test_parent();
  options.owner_uid = owner_uid;
  options.owner_gid = owner_gid;
  // The tests do not lie beside sbx-scope; who wants it used says where it is.
  const char* scope = std::getenv("SBX_TEST_SCOPE_PROGRAM");
  if (scope != nullptr) options.scope_program = scope;
  return options;
}

}  // namespace

void DriverTest::SetUp() {
  const DriverOptions options = options_for(::geteuid(), ::getegid());
  auto driver = choose_driver(options);
  if (!driver) {
    GTEST_SKIP() << to_string(driver.error()) << "; fix: " << driver.error().fix;
  }
  driver_ = std::move(*driver);
  if (!needed_.empty() && driver_->name() != needed_) {
    GTEST_SKIP() << "needs cgroup " << needed_ << ", this host has " << driver_->name();
  }
}

void DriverTest::TearDown() {
  driver_.reset();
  // As an ordinary user on v2 the subtree was there before.
  if (::geteuid() != 0) return;
  EXPECT_EQ(remove_directories_named(test_parent()), std::vector<std::string>{});
}

std::unique_ptr<CgroupRun> DriverTest::make_run(const std::string& record,
                                                const RunLimits& limits) const {
  auto run = driver_->create(record, limits);
  if (!run) {
    ADD_FAILURE() << to_string(run.error());
    return nullptr;
  }
  return std::move(*run);
}

std::unique_ptr<Driver> DriverTest::make_driver(uid_t owner) const {
  auto driver = choose_driver(options_for(owner, owner));
  if (!driver) {
    ADD_FAILURE() << to_string(driver.error());
    return nullptr;
  }
  return std::move(*driver);
}

}  // namespace sbx::cgroup::test
