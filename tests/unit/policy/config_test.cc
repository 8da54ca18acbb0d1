#include "runtime/policy/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "runtime/base/toml.h"
#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::string config_error(const std::string& text) {
  return error_of(parse_runtime_config(text, "r"));
}

void expect_defaults(const RuntimeConfig& config) {
  const RuntimeConfig defaults;
  EXPECT_EQ(config.uid_base, defaults.uid_base);
  EXPECT_EQ(config.runtime_dir, defaults.runtime_dir);
  EXPECT_EQ(config.image_dir, defaults.image_dir);
  EXPECT_EQ(config.cgroup_parent, defaults.cgroup_parent);
  EXPECT_EQ(config.max_memory, defaults.max_memory);
  EXPECT_EQ(config.max_cpus_milli, defaults.max_cpus_milli);
  EXPECT_EQ(config.max_pids, defaults.max_pids);
  EXPECT_EQ(config.max_wall_seconds, defaults.max_wall_seconds);
}

TEST(RuntimeConfig, AnEmptyFileIsTheDefaults) {
  const auto config = parse_runtime_config("", "r");
  ASSERT_TRUE(config) << error_of(config);
  expect_defaults(*config);
}

TEST(RuntimeConfig, TheTemplateParsesBackToTheDefaults) {
  const auto config = parse_runtime_config(runtime_config_template(), "template");
  ASSERT_TRUE(config) << error_of(config);
  expect_defaults(*config);
}

TEST(RuntimeConfig, TheTemplateHasEveryKeyWithAComment) {
  const std::string text = runtime_config_template();
  const auto root = parse_toml(text, "template");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->items.size(), 8U) << "as many as the struct has members";
  for (const TomlValue& item : root->items) {
    const std::size_t line = text.find("\n" + item.key + " = ");
    ASSERT_NE(line, std::string::npos) << item.key;
    EXPECT_EQ(text[text.rfind('\n', line - 1) + 1], '#') << item.key;
  }
}

TEST(RuntimeConfig, ReadsEveryKey) {
  const auto config = parse_runtime_config(
      "uid_base = 200000\nruntime_dir = \"/srv/run\"\nimage_dir = \"/srv/images\"\n"
      "cgroup_parent = \"box.slice\"\nmax_memory = \"4G\"\nmax_cpus = 1.5\nmax_pids = 512\n"
      "max_wall_seconds = 600\n",
      "r");
  ASSERT_TRUE(config) << error_of(config);
  EXPECT_EQ(config->uid_base, 200000U);
  EXPECT_EQ(config->runtime_dir, "/srv/run");
  EXPECT_EQ(config->image_dir, "/srv/images");
  EXPECT_EQ(config->cgroup_parent, "box.slice");
  EXPECT_EQ(config->max_memory, 4096 * kMiB);
  EXPECT_EQ(config->max_cpus_milli, 1'500U);
  EXPECT_EQ(config->max_pids, 512U);
  EXPECT_EQ(config->max_wall_seconds, 600U);
}

TEST(RuntimeConfig, MistakesNameFileLineAndKey) {
  EXPECT_EQ(config_error("\nuid_bse = 1\n"), "r:2: key 'uid_bse': unknown key");
  EXPECT_EQ(config_error("[ceilings]\nmemory = 1\n"), "r:1: key 'ceilings': unknown key");
  EXPECT_EQ(config_error("uid_base = \"1\""),
            "r:1: key 'uid_base': must be an integer, not a string");
  EXPECT_EQ(config_error("uid_base = 1000"),
            "r:1: key 'uid_base': 1000 is out of range: 65536 to 4294901759");
  EXPECT_EQ(config_error("runtime_dir = \"run\""),
            "r:1: key 'runtime_dir': must be an absolute path, or empty");
  EXPECT_THAT(config_error("cgroup_parent = \"../x\""), HasSubstr("r:1: key 'cgroup_parent': "));
  EXPECT_THAT(config_error("cgroup_parent = \"\""), HasSubstr("r:1: key 'cgroup_parent': "));
  EXPECT_THAT(config_error("cgroup_parent = \"a/b\""), HasSubstr("r:1: key 'cgroup_parent': "));
  EXPECT_THAT(config_error("max_memory = \"lots\""), HasSubstr("r:1: key 'max_memory': memory: "));
  EXPECT_THAT(config_error("max_memory = 1.5"), HasSubstr("must be an integer, not a number"));
  EXPECT_THAT(config_error("max_cpus = -1"), HasSubstr("r:1: key 'max_cpus': cpus: "));
  EXPECT_THAT(config_error("max_pids = \"9\""), HasSubstr("must be an integer, not a string"));
  EXPECT_THAT(config_error("max_wall_seconds = 999999999"), HasSubstr("0 means no ceiling"));
}

TEST(RuntimeConfig, TheLastIdOfTheRangeIsStillAnId) {
  EXPECT_TRUE(parse_runtime_config("uid_base = 4294901759", "r"));
  EXPECT_FALSE(parse_runtime_config("uid_base = 4294901760", "r"));
}

TEST(Ceilings, TheConfigsAreNamedWithBothFigures) {
  RuntimeConfig config;
  config.max_memory = 128 * kMiB;
  EXPECT_EQ(error_of(check_ceilings(Limits{}, config, {})),
            "memory: 256M is more than the ceiling max_memory in runtime.toml, 128M");
  config = {};
  config.max_cpus_milli = 250;
  EXPECT_EQ(error_of(check_ceilings(Limits{}, config, {})),
            "cpus: 0.5 is more than the ceiling max_cpus in runtime.toml, 0.25");
  config = {};
  config.max_pids = 63;
  EXPECT_EQ(error_of(check_ceilings(Limits{}, config, {})),
            "pids: 64 is more than the ceiling max_pids in runtime.toml, 63");
  config = {};
  config.max_wall_seconds = 29;
  EXPECT_EQ(error_of(check_ceilings(Limits{}, config, {})),
            "wall_seconds: 30 is more than the ceiling max_wall_seconds in runtime.toml, 29");
  EXPECT_EQ(check_ceilings(Limits{}, config, {}).error().code, ErrorCode::kInvalid);
}

TEST(Ceilings, TheHostsHoldWithoutAConfig) {
  Limits limits;
  limits.cpus_milli = 2'001;
  EXPECT_EQ(error_of(check_ceilings(limits, {}, {.cpus = 2})),
            "cpus: 2.001 is more than this host's 2");
  EXPECT_EQ(error_of(check_ceilings(Limits{}, {}, {.memory = 255 * kMiB, .cpus = 2})),
            "memory: 256M is more than this host's 255M");
}

TEST(Ceilings, ARefusalSaysWhatMayBeAskedFor) {
  RuntimeConfig config;
  config.max_memory = 128 * kMiB;
  EXPECT_EQ(check_ceilings(Limits{}, config, {}).error().fix,
            "ask for at most 128M, or have max_memory raised");
  EXPECT_EQ(check_ceilings(Limits{}, {}, {.memory = 255 * kMiB, .cpus = 2}).error().fix,
            "ask for at most 255M");
}

TEST(Ceilings, WhatNobodyAskedForIsLowered) {
  RuntimeConfig config;
  config.max_memory = 64 * kMiB;
  config.max_cpus_milli = 250;
  config.max_pids = 10;
  config.max_wall_seconds = 5;
  Limits limits;
  lower_to_ceilings(limits, config, {}, {});
  Limits expected;
  expected.memory = 64 * kMiB;
  expected.cpus_milli = 250;
  expected.pids = 10;
  expected.wall_seconds = std::chrono::seconds(5);
  EXPECT_EQ(limits, expected);
  EXPECT_TRUE(check_ceilings(limits, config, {}));
  limits = {};
  lower_to_ceilings(limits, {}, {.memory = 128 * kMiB, .cpus = 1}, {});
  EXPECT_EQ(limits.memory, 128 * kMiB) << "the host's";
  EXPECT_EQ(limits.cpus_milli, Limits{}.cpus_milli) << "never raised";
}

TEST(Ceilings, TheHardLimitsOfWhoeverStartedUsAreTheHosts) {
  const HostBounds host{.nofile = 120, .fsize = 32 * kMiB};
  Limits limits;
  lower_to_ceilings(limits, {}, host, {});
  EXPECT_EQ(limits.nofile, 120U);
  EXPECT_EQ(limits.fsize, 32 * kMiB);
  limits = {};
  lower_to_ceilings(limits, {}, host, {"nofile"});
  EXPECT_EQ(limits.nofile, Limits{}.nofile);
  EXPECT_EQ(error_of(check_ceilings(limits, {}, host)), "nofile: 256 is more than this host's 120");
  EXPECT_EQ(check_ceilings(limits, {}, host).error().fix,
            "ask for at most 120, or raise the hard limit where this is started from (ulimit -n)");
  limits = {};
  lower_to_ceilings(limits, {}, {.nofile = RLIM_INFINITY, .fsize = RLIM_INFINITY}, {});
  EXPECT_EQ(limits, Limits{}) << "no limit";
}

TEST(Ceilings, WhatSomebodyAskedForIsNot) {
  RuntimeConfig config;
  config.max_memory = 64 * kMiB;
  config.max_pids = 10;
  Limits limits;
  lower_to_ceilings(limits, config, {}, {"memory"});
  EXPECT_EQ(limits.memory, Limits{}.memory);
  EXPECT_EQ(limits.pids, 10U);
  EXPECT_FALSE(check_ceilings(limits, config, {}));
}

TEST(Ceilings, WhatIsExactlyAtACeilingPasses) {
  RuntimeConfig config;
  config.max_memory = 256 * kMiB;
  config.max_cpus_milli = 500;
  config.max_pids = 64;
  config.max_wall_seconds = 30;
  EXPECT_TRUE(check_ceilings(Limits{}, config, {.memory = 256 * kMiB, .cpus = 1}));
  EXPECT_TRUE(check_ceilings(Limits{}, {}, {.memory = 256 * kMiB, .cpus = 1}));
}

class LoadRuntimeConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/etc/sbx/runtime.toml", F_OK) == 0) {
      GTEST_SKIP() << "this host has a runtime.toml of its own";
    }
    home_ = ::testing::TempDir() + "sbx-config-" + std::to_string(::getpid());
    ASSERT_EQ(::mkdir(home_.c_str(), 0700), 0);
    ASSERT_EQ(::mkdir((home_ + "/sbx").c_str(), 0700), 0);
    ASSERT_EQ(::setenv("XDG_CONFIG_HOME", home_.c_str(), 1), 0);
  }
  void TearDown() override {
    if (home_.empty()) return;
    (void)::unlink((home_ + "/sbx/runtime.toml").c_str());  // not every test makes it
    EXPECT_EQ(::rmdir((home_ + "/sbx").c_str()), 0);
    EXPECT_EQ(::rmdir(home_.c_str()), 0);
    EXPECT_EQ(::unsetenv("XDG_CONFIG_HOME"), 0);
  }
  std::string home_;
};

TEST_F(LoadRuntimeConfig, AnAbsentFileMeansTheDefaults) {
  const auto config = load_runtime_config();
  ASSERT_TRUE(config) << error_of(config);
  expect_defaults(*config);
}

TEST_F(LoadRuntimeConfig, TheUsersFileIsRead) {
  std::ofstream(home_ + "/sbx/runtime.toml") << "max_pids = 9\n";
  const auto config = load_runtime_config();
  ASSERT_TRUE(config) << error_of(config);
  EXPECT_EQ(config->max_pids, 9U);
}

TEST_F(LoadRuntimeConfig, AnothersFileIsNotTheUsers) {
  const std::string path = home_ + "/sbx/runtime.toml";
  std::ofstream(path) << "max_pids = 9\n";
  if (::chown(path.c_str(), 12345, 12345) != 0) {
    ASSERT_NE(::geteuid(), 0U) << "only an ordinary user cannot give a file away";
    return;
  }
  const auto config = load_runtime_config();
  ASSERT_TRUE(config) << error_of(config);
  expect_defaults(*config);
}

TEST_F(LoadRuntimeConfig, AnothersLinkThatLeadsNowhereIsNotTheUsers) {
  const std::string path = home_ + "/sbx/runtime.toml";
  ASSERT_EQ(::symlink("nowhere", path.c_str()), 0);
  if (::lchown(path.c_str(), 12345, 12345) != 0) {
    ASSERT_NE(::geteuid(), 0U);
    return;
  }
  const auto config = load_runtime_config();
  ASSERT_TRUE(config) << error_of(config);
  expect_defaults(*config);
}

// It may hold ceilings.
TEST_F(LoadRuntimeConfig, TheUsersOwnThatCannotBeReadIsRefused) {
  const std::string path = home_ + "/sbx/runtime.toml";
  ASSERT_EQ(::symlink("nowhere", path.c_str()), 0);
  EXPECT_THAT(error_of(load_runtime_config()), HasSubstr(path));
  ASSERT_EQ(::unlink(path.c_str()), 0);
  if (::geteuid() == 0) return;  // who reads all
  std::ofstream(path) << "max_pids = 9\n";
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_THAT(error_of(load_runtime_config()), HasSubstr("Permission denied"));
}

TEST_F(LoadRuntimeConfig, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((home_ + "/sbx/runtime.toml").c_str(), 0600), 0);
  EXPECT_THAT(error_of(load_runtime_config()), HasSubstr("is not a regular file"));
}

TEST_F(LoadRuntimeConfig, ABrokenFileIsNotPassedOver) {
  std::ofstream(home_ + "/sbx/runtime.toml") << "max_pids = \n";
  EXPECT_THAT(error_of(load_runtime_config()), HasSubstr("/sbx/runtime.toml:1: "));
}

}  // namespace
}  // namespace sbx::policy
