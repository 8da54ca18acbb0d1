// Configurations whose values are each in range, and that still cannot be meant or cannot work
// here.
#include "runtime/daemon/config_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/daemon/config_mistake.h"

namespace sbx::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "host" as the image: none is looked for.
Result<std::vector<std::string>> check(const std::string& text, HostSide host = {}) {
  auto config = parse_daemon_config("image = \"host\"\n" + text, "f");
  EXPECT_TRUE(config) << text;
  DaemonConfig usual;
  return fit_host(config ? *config : usual, {}, host);
}

std::vector<std::string> warnings(const std::string& text, HostSide host) {
  auto checked = check(text, host);
  EXPECT_TRUE(checked) << text;
  return checked ? *std::move(checked) : std::vector<std::string>();
}

TEST(DaemonConfigWhole, ASharesIsNoMoreThanTheWhole) {
  EXPECT_EQ(mistake("max_queued = 1\nmax_queued_per_peer = 2"),
            "f:2: key 'max_queued_per_peer': 2 is above max_queued (1)");
  EXPECT_EQ(mistake("max_connections_per_peer = 2000"),
            "f:1: key 'max_connections_per_peer': 2000 is above max_connections (1024)");
  EXPECT_EQ(mistake("[sessions]\nmax = 3\nmax_per_peer = 4"),
            "f:3: key 'sessions.max_per_peer': 4 is above sessions.max (3)");
  EXPECT_EQ(mistake("[sessions]\nidle_seconds = 9\nage_seconds = 8"),
            "f:2: key 'sessions.idle_seconds': 9 is above sessions.age_seconds (8)");
}

TEST(DaemonConfigWhole, ADefaultShareFollowsTheWhole) {
  const auto config = parse_daemon_config(
      "max_queued = 3\nmax_connections = 4\n[sessions]\nmax = 5\nage_seconds = 6", "f");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->max_queued_per_peer, 3U);
  EXPECT_EQ(config->max_connections_per_peer, 4U);
  EXPECT_EQ(config->session_max_per_peer, 5U);
  EXPECT_EQ(config->session_idle_seconds, 6U);
  EXPECT_TRUE(parse_daemon_config("max_queued = 0\nmax_queued_per_peer = 9", "f"))
      << "nobody waits, whatever one's share would be";
}

TEST(DaemonConfigWhole, TheAnswersOfTwoRunsFitTheBudget) {
  EXPECT_EQ(
      mistake("answer_budget = \"4M\"\n[ceilings]\nstdout_bytes = \"2M\""),
      "f:1: key 'answer_budget': answer_budget (4M) is not twice what one run may write (3M)");
  EXPECT_THAT(mistake("[ceilings]\nstdout_bytes = \"40M\""),
              HasSubstr("f:2: key 'ceilings.stdout_bytes': answer_budget (32M) is not twice"));
  EXPECT_THAT(mistake("[ceilings]\nstderr_bytes = \"40M\""),
              HasSubstr("f:2: key 'ceilings.stderr_bytes'"));
}

TEST(DaemonConfigWhole, WhatLeavesNothingToUseIsOutOfRange) {
  EXPECT_EQ(mistake("[sessions]\nmax = 0"),
            "f:2: key 'sessions.max': 0 is out of range: 1 to 30000");
  EXPECT_THAT(mistake("[sessions]\nmax_per_peer = 0"), HasSubstr("0 is out of range"));
  EXPECT_THAT(mistake("memory_budget = \"1M\""), HasSubstr("1M is out of range: at least 16M"));
}

TEST(DaemonConfigWhole, ACeilingLeavesWhatAnyRunNeeds) {
  EXPECT_EQ(mistake("[ceilings]\nmemory = \"2M\""),
            "f:2: key 'ceilings.memory': 2M is too little for any run: at least 4M");
  EXPECT_EQ(mistake("[ceilings]\nwall_seconds = 0.01"),
            "f:2: key 'ceilings.wall_seconds': 0.01 is too little for any run: at least 1");
  EXPECT_EQ(mistake("[ceilings]\nnofile = 8"),
            "f:2: key 'ceilings.nofile': 8 is too little for any run: at least 16");
  EXPECT_TRUE(
      parse_daemon_config("[ceilings]\nmemory = \"4M\"\nwall_seconds = 1\nnofile = 16", "f"));
}

TEST(DaemonConfigHost, RuntimesCeilingsLeaveItToo) {
  policy::RuntimeConfig runtime;
  runtime.max_memory = policy::kMiB;
  auto config = parse_daemon_config("image = \"host\"", "f");
  ASSERT_TRUE(config);
  const auto checked = fit_host(*config, runtime, {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(to_string(checked.error()),
            "runtime.toml: key 'max_memory': 1M is too little for any run: at least 4M");
  runtime.max_memory = 4 * policy::kMiB;
  EXPECT_TRUE(fit_host(*config, runtime, {}));
}

TEST(DaemonConfigWhole, ASocketsPathIsOneThatCanBeBound) {
  const std::string longest = "/" + std::string(106, 'a');
  EXPECT_TRUE(parse_daemon_config("socket = \"" + longest + "\"", "f"));
  EXPECT_EQ(mistake("socket = \"" + longest + "a\""),
            "f:1: key 'socket': must be a file's path of at most 107 bytes");
  EXPECT_THAT(mistake("socket = \"/run/sbx/\""), HasSubstr("must be a file's path"));
}

TEST(DaemonConfigHost, AUserIsThereWhenRootNeedsHim) {
  const auto missing = check("user = \"no-such-user-here\"\n", {.root = true});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kHost);
  EXPECT_THAT(to_string(missing.error()),
              HasSubstr("f:2: key 'user': there is no user 'no-such-user-here'"));
  EXPECT_THAT(missing.error().fix, HasSubstr("useradd"));
  EXPECT_THAT(warnings("user = \"no-such-user-here\"\n", {.root = false}),
              ElementsAre(HasSubstr("f:2: key 'user': there is no user")));
  EXPECT_THAT(warnings("", {.root = false}), IsEmpty()) << "of no account, and not written";
}

TEST(DaemonConfigHost, AnImageIsThere) {
  policy::RuntimeConfig runtime;
  runtime.image_dir = "/nowhere";
  auto written = parse_daemon_config("\nimage = \"missing\"", "f");
  ASSERT_TRUE(written);
  const auto checked = fit_host(*written, runtime, {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kHost);
  EXPECT_EQ(to_string(checked.error()), "f:2: key 'image': no image 'missing' in /nowhere/missing");
  EXPECT_THAT(checked.error().fix, HasSubstr("image = \"host\""));
  DaemonConfig usual;
  const auto by_default = fit_host(usual, runtime, {});
  ASSERT_FALSE(by_default);
  EXPECT_THAT(to_string(by_default.error()),
              HasSubstr("key 'image' (not written: its default): no image 'default'"));
  auto named = parse_daemon_config("image = \"Default\"", "f");
  ASSERT_TRUE(named);
  const auto no_name = fit_host(*named, runtime, {});
  ASSERT_FALSE(no_name);
  EXPECT_EQ(no_name.error().code, ErrorCode::kInvalid);
}

TEST(DaemonConfigHost, BudgetsAboveItsMemoryAreWarnings) {
  const HostSide host{.memory = 24'000 * policy::kMiB};
  EXPECT_THAT(warnings("memory_budget = \"900G\"\n", host),
              ElementsAre("f:2: key 'memory_budget': 900G is more than the 24000M of memory that "
                          "this host, or the unit's cgroup, has"));
  EXPECT_THAT(warnings("memory_budget = \"23G\"\n", host), IsEmpty());
  EXPECT_THAT(
      warnings("answer_budget = \"60G\"\nbody_budget = \"1G\"\n", {.memory = 512 * policy::kMiB}),
      SizeIs(2));
}

TEST(DaemonConfigHost, WhatDescriptorsAreNotEnoughForIsLowered) {
  EXPECT_THAT(warnings("", {.descriptors = 13'328}), IsEmpty());
  auto config = parse_daemon_config("image = \"host\"\n", "f");
  ASSERT_TRUE(config);
  const auto warned = fit_host(*config, {}, {.descriptors = 1024});
  ASSERT_TRUE(warned);
  EXPECT_THAT(*warned,
              ElementsAre(AllOf(HasSubstr("needs about 5136 descriptors, and this process may have "
                                          "1024 (ulimit -n, LimitNOFILE)"),
                                HasSubstr("lowered to 9, 145 (72 for one user) and 141 (14)")),
                          HasSubstr("a run may give out 13 files at most")));
  EXPECT_EQ(config->max_running, 9U);
  EXPECT_EQ(config->max_connections, 145U);
  EXPECT_EQ(config->max_connections_per_peer, 72U);
  EXPECT_EQ(config->session_max, 141U);
  EXPECT_EQ(config->session_max_per_peer, 14U);
  EXPECT_EQ(config->ceilings.text("files"), "13");
  // Files of answers that fill the budget take no more than the rest.
  EXPECT_EQ(config->answer_budget / config->answer_bytes_per_file, 120U);
  ASSERT_TRUE(fit_host(*config, {}, {.descriptors = 1}));
  EXPECT_EQ(config->max_running, 1U) << "of each there is one";
  EXPECT_EQ(config->session_max_per_peer, 1U);
}

// What is in between lowers the files of a run alone.
TEST(DaemonConfigHost, FilesOfRunsTakeWhatIsLeft) {
  auto config = parse_daemon_config("image = \"host\"\n[ceilings]\nfiles = 50\n", "f");
  ASSERT_TRUE(config);
  const auto warned = fit_host(*config, {}, {.descriptors = 10'000});
  ASSERT_TRUE(warned);
  EXPECT_THAT(*warned, ElementsAre(HasSubstr("a run may give out 38 files at most")));
  EXPECT_EQ(config->max_running, 64U);
  EXPECT_EQ(config->ceilings.text("files"), "38");
  ASSERT_TRUE(fit_host(*config, {}, {.descriptors = 1'000'000}));
  EXPECT_EQ(config->ceilings.text("files"), "38") << "never raised";
}

TEST(DaemonConfigHost, StoredSessionsTakeNobodyElsesDescriptors) {
  auto config = parse_daemon_config("image = \"host\"\n", "f");
  ASSERT_TRUE(config);
  ASSERT_TRUE(fit_host(*config, {}, {.descriptors = 1024}));
  EXPECT_TRUE(check_stored(*config, config->session_max, 1024));
  const auto more = check_stored(*config, 300, 1024);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kHost);
  EXPECT_THAT(more.error().detail, HasSubstr("300 sessions are stored"));
  EXPECT_THAT(more.error().fix, HasSubstr("allow at least 1098 "));
  EXPECT_TRUE(check_stored(*config, 300, 1098));
}

}  // namespace
}  // namespace sbx::daemon
