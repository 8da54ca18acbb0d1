#include "runtime/daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/toml.h"
#include "tests/support/process.h"
#include "tests/unit/daemon/config_mistake.h"

namespace sbx::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void collect_paths(const TomlValue& table, std::set<std::string>& paths) {
  for (const TomlValue& item : table.items) {
    if (item.kind == TomlKind::kTable) {
      collect_paths(item, paths);
    } else {
      paths.insert(item.path);
    }
  }
}

TEST(DaemonConfig, AnEmptyFileIsTheDefaults) {
  const auto config = parse_daemon_config("", "f");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->user, "sbx");
  EXPECT_EQ(config->max_running, 64U);
  EXPECT_EQ(config->memory_budget, (MemoryBudget{80, 0}));
  EXPECT_EQ(config->ceilings, default_ceilings());
}

// Values of the template, so that a key that is there and not read would show.
TEST(DaemonConfig, TheTemplateParsesBackToTheDefaults) {
  const auto config = parse_daemon_config(daemon_config_template(), "template");
  ASSERT_TRUE(config) << to_string(config.error());
  const DaemonConfig defaults;
  EXPECT_EQ(config->socket, defaults.socket);
  EXPECT_EQ(config->state_dir, defaults.state_dir);
  EXPECT_EQ(config->user, defaults.user);
  EXPECT_EQ(config->allow_uids, defaults.allow_uids);
  EXPECT_EQ(config->image, defaults.image);
  EXPECT_EQ(config->profiles, defaults.profiles);
  EXPECT_EQ(config->allow_missing, defaults.allow_missing);
  EXPECT_EQ(config->max_running, defaults.max_running);
  EXPECT_EQ(config->max_queued, defaults.max_queued);
  EXPECT_EQ(config->max_queued_per_peer, defaults.max_queued_per_peer);
  EXPECT_EQ(config->queue_seconds, defaults.queue_seconds);
  EXPECT_EQ(config->memory_budget, defaults.memory_budget);
  EXPECT_EQ(config->body_budget, defaults.body_budget);
  EXPECT_EQ(config->answer_budget, defaults.answer_budget);
  EXPECT_EQ(config->drain_seconds, defaults.drain_seconds);
  EXPECT_EQ(config->reaper_seconds, defaults.reaper_seconds);
  EXPECT_EQ(config->stream_buffer, defaults.stream_buffer);
  EXPECT_EQ(config->max_connections, defaults.max_connections);
  EXPECT_EQ(config->max_connections_per_peer, defaults.max_connections_per_peer);
  EXPECT_EQ(config->audit_sync_seconds, defaults.audit_sync_seconds);
  EXPECT_EQ(config->log_level, defaults.log_level);
  EXPECT_EQ(config->session_max, defaults.session_max);
  EXPECT_EQ(config->session_max_per_peer, defaults.session_max_per_peer);
  EXPECT_EQ(config->session_idle_seconds, defaults.session_idle_seconds);
  EXPECT_EQ(config->session_age_seconds, defaults.session_age_seconds);
  EXPECT_EQ(config->ceilings, defaults.ceilings);
}

TEST(DaemonConfig, TheTemplateHasEveryKeyWithACommentAboveIt) {
  const std::string text = daemon_config_template();
  const auto root = parse_toml(text, "template");
  ASSERT_TRUE(root);
  std::set<std::string> paths;
  collect_paths(*root, paths);
  EXPECT_EQ(std::count_if(paths.begin(), paths.end(),
                          [](const std::string& path) { return !path.starts_with("ceilings."); }),
            25)
      << "as many as the struct has members, but for the ceilings";
  for (const std::string& path : paths) {
    const std::string name = path.substr(path.rfind('.') + 1);
    const std::size_t line = text.find("\n" + name + " = ");
    ASSERT_NE(line, std::string::npos) << path;
    EXPECT_EQ(text[text.rfind('\n', line - 1) + 1], '#') << path;
  }
  for (const policy::LimitField& field : policy::limit_fields()) {
    EXPECT_THAT(text, HasSubstr(std::string(field.name) + " = "))
        << "a ceiling, or the lack of one";
  }
}

TEST(DaemonConfig, ReadsEveryKindOfValue) {
  const auto config = parse_daemon_config(R"(
socket = "/srv/s"
state_dir = "/srv/state"
user = "runner"
allow_uids = [1000, 1001]
profiles = ["/etc/sbx/a.toml"]
allow_missing = ["cgroup"]
max_running = 3
memory_budget = "2G"
stream_buffer = 65536
log_level = "debug"
[sessions]
idle_seconds = 60
[ceilings]
memory = "512M"
cpus = 1.5
network = "host"
)",
                                          "f");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->socket, "/srv/s");
  EXPECT_THAT(config->allow_uids, ElementsAre(1000U, 1001U));
  EXPECT_THAT(config->profiles, ElementsAre("/etc/sbx/a.toml"));
  EXPECT_THAT(config->allow_missing, ElementsAre("cgroup"));
  EXPECT_EQ(config->max_running, 3U);
  EXPECT_EQ(config->memory_budget.bytes, 2048 * policy::kMiB);
  EXPECT_EQ(config->stream_buffer, 65536U);
  EXPECT_EQ(config->session_idle_seconds, 60U);
  EXPECT_EQ(config->ceilings.text("memory"), "512M");
  EXPECT_EQ(config->ceilings.text("cpus"), "1.5");
  EXPECT_EQ(config->ceilings.text("network"), "host");
}

TEST(DaemonConfig, ADefaultFollowsWhatWasWritten) {
  const auto config = parse_daemon_config("max_queued = 60", "f");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->max_queued_per_peer, 60U);
  EXPECT_FALSE(parse_daemon_config("max_queued = 60\nmax_queued_per_peer = 61", "f"));
}

TEST(DaemonConfig, MistakesNameFileLineAndKey) {
  EXPECT_EQ(mistake("\nmax_runing = 3"), "f:2: key 'max_runing': unknown key");
  EXPECT_EQ(mistake("[sessions]\nidle = 3"), "f:2: key 'sessions.idle': unknown key");
  EXPECT_EQ(mistake("[session]\nidle_seconds = 3"), "f:1: key 'session': unknown key");
  EXPECT_EQ(mistake("sessions = 3"), "f:1: key 'sessions': must be a table, not an integer");
  EXPECT_EQ(mistake("max_running = 0"), "f:1: key 'max_running': 0 is out of range: 1 to 10000");
  EXPECT_EQ(mistake("max_running = \"3\""),
            "f:1: key 'max_running': must be an integer, not a string");
  EXPECT_EQ(mistake("memory_budget = \"101%\""),
            "f:1: key 'memory_budget': 101% is out of range: 1% to 100%");
  EXPECT_THAT(mistake("memory_budget = \"many\""), HasSubstr("'many' is not a size"));
  EXPECT_EQ(mistake("body_budget = \"31M\""),
            "f:1: key 'body_budget': 31M is out of range: 32M to 1G");
  EXPECT_THAT(mistake("stream_buffer = 1"), HasSubstr("1 is out of range: 64K to 64M"));
  EXPECT_EQ(mistake("socket = \"s\""), "f:1: key 'socket': must be an absolute path");
  EXPECT_EQ(mistake("allow_uids = [-1]"),
            "f:1: key 'allow_uids[0]': -1 is out of range: 0 to 4294967294");
  EXPECT_THAT(mistake("allow_missing = [\"landlock\"]"), HasSubstr("not a required layer"));
  EXPECT_THAT(mistake("allow_missing = [\"rootfs\"]"), HasSubstr("nothing would be isolated"));
  EXPECT_THAT(mistake("log_level = \"loud\""), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(mistake("[ceilings]\nmemory = \"x\""), HasSubstr("f:2: key 'ceilings.memory'"));
  EXPECT_THAT(mistake("[ceilings]\nram = 1"), HasSubstr("'ram' is not a limit"));
  EXPECT_THAT(mistake("[ceilings]\nmemory = [1]"), HasSubstr("must be a value"));
  EXPECT_EQ(mistake("user = \"root\""), "f:1: key 'user': must not be root");
}

TEST(DaemonConfig, ADefaultBudgetOfAnswersFollowsTheRunsThatAreAllowed) {
  const auto many = parse_daemon_config("max_running = 500", "f");
  ASSERT_TRUE(many);
  EXPECT_EQ(many->answer_budget, 500 * 256 * policy::kKiB);
  const auto few = parse_daemon_config("max_running = 2", "f");
  ASSERT_TRUE(few);
  EXPECT_EQ(few->answer_budget, DaemonConfig{}.answer_budget);
  const auto written = parse_daemon_config("max_running = 500\nanswer_budget = \"8M\"", "f");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->answer_budget, 8 * policy::kMiB);
}

TEST(DaemonConfig, AFileThatIsNamedMustBeThere) {
  const auto config = load_daemon_config("/nowhere/sbxd.toml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kHost);
}

TEST(DaemonConfig, IsReadFromTheFileThatIsNamed) {
  const test::TemporaryDirectory directory;
  const auto config = load_daemon_config(directory.write("c.toml", "max_running = 7\n"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->max_running, 7U);
}

}  // namespace
}  // namespace sbx::daemon
