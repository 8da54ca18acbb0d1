// The probes of doctor on the host that is there.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/cli/doctor_checks.h"
#include "runtime/cli/in_child.h"

namespace sbx::cli {
namespace {

TEST(Doctor, TheRealHostAnswersEveryProbe) {
  const std::unique_ptr<Host> host = real_host();
  for (const Check& check : run_checks(*host, {})) {
    EXPECT_FALSE(check.name.empty());
    EXPECT_EQ(check.state == CheckState::kOk, check.fix.empty()) << check.name;
  }
}

// Whatever the caller may have at most: only too little of it explains that a program failed.
TEST(RealHost, AProgramThatFailsWithEnoughMemoryWasNotShortOfIt) {
  char directory[] = "/tmp/sbx-unit-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string broken = std::string(directory) + "/broken";
  std::ofstream(broken) << "#!/bin/sh\nexit 127\n";
  ASSERT_EQ(::chmod(broken.c_str(), 0755), 0);
  const Act act = in_child([&broken] {
    if (Act own = enter_user_namespace(0); !own.ok()) return own;
    if (::unshare(CLONE_NEWNS) != 0) return failed("unshare mount");
    if (::mount(broken.c_str(), "/usr/bin/getent", nullptr, MS_BIND, nullptr) != 0) {
      return failed("mount over getent");
    }
    const rlimit finite{rlim_t{1} << 46, rlim_t{1} << 46};
    if (::setrlimit(RLIMIT_AS, &finite) != 0) return failed("setrlimit");
    if (run_quietly({"/usr/bin/getent"}) != 127) return Act{"control: getent is broken", 0};
    const Result<bool> has_name = real_host()->has_login_name();
    if (!has_name) return Act{"has_login_name", has_name.error().sys_errno};
    return *has_name ? Act{"a name of a broken getent's", 0} : Act{};
  });
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(act.ok()) << act.failed_step << ": " << std::strerror(act.sys_errno);
}

}  // namespace
}  // namespace sbx::cli
