#include "agentd/config/config.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <ios>

#include "agentd/config/places.h"
#include "agentd/daemon/arguments.h"
#include "agentd/daemon/startup.h"
#include "agentd/record/record.h"
#include "tests/support/process.h"

namespace agentd::config {
namespace {

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "f");
  return config ? "none" : to_string(config.error());
}

TEST(Config, TheTemplateParsesToTheDefaultsAndHasEveryKey) {
  const auto parsed = parse_config(config_template(), "template");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_EQ(*parsed, AgentConfig{});
  // Each key of the template, set to a wrong kind, is known to the parser.
  std::string group;
  std::size_t keys = 0;
  std::istringstream lines(config_template());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) group = line + "\n";
    if (line.empty() || line.starts_with('#') || line.starts_with('[')) continue;
    const std::string key = line.substr(0, line.find(' '));
    const std::string error = error_of(group + key + " = 1979-05-27");
    EXPECT_NE(error.find("must be"), std::string::npos) << key << ": " << error;
    ++keys;
  }
  EXPECT_EQ(keys, 35U);
}

// So that tests of the loop, which have no configuration, are of what is shipped.
TEST(Config, TheShippedCeilingsAreTheLoopsOwn) {
  const AgentConfig config;
  const record::Budget budget;
  EXPECT_EQ(static_cast<int>(config.attempts), budget.attempts);
  EXPECT_EQ(std::int64_t{config.tokens}, budget.tokens);
  EXPECT_DOUBLE_EQ(config.cost_usd, dollars(budget.cost));
  EXPECT_DOUBLE_EQ(config.sandbox_seconds, static_cast<double>(budget.sandbox.count()) / 1000);
  EXPECT_DOUBLE_EQ(config.wall_seconds, static_cast<double>(budget.wall.count()) / 1000);
}

TEST(Config, ReadsValuesOfEveryKind) {
  const auto config = parse_config(
      "max_running = 3\nallow_uids = [0, 1000]\n[provider]\nkind = \"replay\"\nprice_in = 1\n"
      "price_out = 0.6\nstream = false\nrecordings = [\"/a\", \"/b\"]\n[budget]\ncost_usd = "
      "0.006\n",
      "f");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->max_running, 3U);
  EXPECT_EQ(config->allow_uids, (std::vector<std::uint32_t>{0, 1000}));
  EXPECT_EQ(config->price_in, 1);
  EXPECT_FALSE(config->stream);
  EXPECT_EQ(config->recordings.size(), 2U);
  EXPECT_EQ(config->cost_usd, 0.006);
}

TEST(Config, MistakesAreNamedWithFileLineAndKey) {
  EXPECT_EQ(error_of("a = 1\nmax_runing = 1"), "f:1: key 'a': unknown key");
  EXPECT_NE(
      error_of("\nmax_running = 0").find("f:2: key 'max_running': 0 is out of range: 1 to 1000"),
      std::string::npos);
  EXPECT_NE(error_of("max_running = \"3\"").find("must be an integer"), std::string::npos);
  EXPECT_NE(error_of("max_running = 2.5").find("must be an integer"), std::string::npos);
  EXPECT_NE(error_of("[budget]\ncost_usd = \"0.02\"").find("must be a number, not a string"),
            std::string::npos);
  EXPECT_NE(error_of("[budget]\ncost_usd = nan").find("out of range"), std::string::npos);
  EXPECT_NE(error_of("[budget]\nattempts = -1").find("out of range"), std::string::npos);
  EXPECT_NE(error_of("[budget]\nwall_seconds = 1.9").find("out of range: 2 to"), std::string::npos);
  EXPECT_NE(error_of("log_level = \"loud\"").find("one of debug, info"), std::string::npos);
  EXPECT_NE(error_of("provider = 3").find("must be a table"), std::string::npos);
  EXPECT_EQ(error_of("socket = \"relative\""),
            "f:1: key 'socket': must be an absolute path, or empty");
  EXPECT_EQ(error_of("\n[provider]\nbase_url = \"ftp://x\""),
            "f:3: key 'provider.base_url': must begin with https:// or http://");
  EXPECT_EQ(error_of("\n[provider]\nkind = \"openai\""),
            "f:2: key 'provider': base_url and model must be given");
  EXPECT_EQ(error_of("[provider]\n\napi_key_env = \"A B\""),
            "f:3: key 'provider.api_key_env': it is no name of a variable: letters, digits, \"_\"");
  EXPECT_NE(error_of("socket = \"/a\\nb\"").find("one line"), std::string::npos);
  EXPECT_NE(error_of("allow_uids = [4294967295]").find("out of range"), std::string::npos);
}

TEST(Config, AProviderThatCannotWorkIsRefused) {
  EXPECT_NE(error_of("[provider]\nkind = \"openai\"").find("base_url and model"),
            std::string::npos);
  const std::string live = "[provider]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = ";
  EXPECT_NE(error_of(live + "\"ftp://x\"").find("https://"), std::string::npos);
  EXPECT_EQ(error_of(live + "\"http://10.0.0.1/v1\""), "none") << "without a key";
  EXPECT_NE(error_of(live + "\"http://10.0.0.1/v1\"\napi_key_env = \"K\"").find("unencrypted"),
            std::string::npos);
  EXPECT_EQ(error_of(live + "\"http://127.0.0.1:1/v1\"\napi_key_env = \"K\""), "none");
  EXPECT_EQ(error_of(live + "\"https://x/v1\"\napi_key_env = \"K\""), "none");
  EXPECT_NE(error_of(live + "\"https://x/v1\"\napi_key_env = \"K\"\napi_key_file = \"/k\"")
                .find("at most one"),
            std::string::npos);
}

TEST(LoopbackUrls, AreTheseAlone) {
  for (const char* url :
       {"http://localhost/v1", "http://127.0.0.1:11434/v1", "http://[::1]:1/", "http://[::1]"}) {
    EXPECT_TRUE(is_loopback_url(url)) << url;
  }
  for (const char* url :
       {"https://localhost/", "http://localhost.example.com/", "http://127.0.0.1.example.com/",
        "http://127.0.0.1@example.com/", "http://[::1]x/", "http://10.0.0.1/", "http://"}) {
    EXPECT_FALSE(is_loopback_url(url)) << url;
  }
}

TEST(Places, ComeFromTheConfigurationThenTheEnvironment) {
  for (const char* name : {"XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME", "STATE_DIRECTORY",
                           "RUNTIME_DIRECTORY", "SBX_SOCKET"}) {
    ASSERT_EQ(::unsetenv(name), 0);
  }
  EXPECT_FALSE(choose_places({}, false));
  ASSERT_EQ(::setenv("HOME", "/home/x", 1), 0);
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/run/user/1", 1), 0);
  EXPECT_EQ(choose_places({}, false)->state_dir, "/home/x/.local/state/agentd");
  EXPECT_EQ(choose_places({}, false)->socket, "/run/user/1/sbx/agentd.sock");
  EXPECT_EQ(choose_places({}, true)->socket, "/run/agentd/agentd.sock");
  ASSERT_EQ(::setenv("STATE_DIRECTORY", "/s:/t", 1), 0);
  EXPECT_EQ(choose_places({}, true)->state_dir, "/s");
  AgentConfig given;
  given.socket = "/a";
  given.sbxd_socket = "/b";
  given.state_dir = "/c";
  const auto places = choose_places(given, false);
  EXPECT_EQ(places->socket + places->sbxd_socket + places->state_dir, "/a/b/c");
  ASSERT_EQ(::unsetenv("STATE_DIRECTORY"), 0);
}

TEST(Places, SocketsOfDaemonsAreFoundWhenTheyAreNeeded) {
  ASSERT_EQ(::setenv("HOME", "/home/x", 1), 0);
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", "/run/user/1", 1), 0);
  ASSERT_EQ(::setenv("SBX_SOCKET", "/x/sbxd.sock", 1), 0);
  ASSERT_EQ(::setenv("AGENTD_SOCKET", "/x/agentd.sock", 1), 0);
  EXPECT_EQ(choose_places({}, false)->sbxd_socket, "/x/sbxd.sock");
  EXPECT_EQ(find_sbxd_socket("/x/sbxd.sock"), "/x/sbxd.sock");
  EXPECT_EQ(*find_agentd_socket(""), "/x/agentd.sock");
  EXPECT_EQ(*find_agentd_socket("given.sock"), "given.sock");
  ASSERT_EQ(::unsetenv("SBX_SOCKET"), 0);
  EXPECT_EQ(choose_places({}, false)->sbxd_socket, "") << "sbxd may start later, elsewhere";
  ASSERT_EQ(::unsetenv("AGENTD_SOCKET"), 0);
  const bool system = ::access("/run/sbx/sbxd.sock", F_OK) == 0;  // for us or not
  EXPECT_EQ(find_sbxd_socket(""), system ? "/run/sbx/sbxd.sock" : "/run/user/1/sbx/sbxd.sock");
  ASSERT_EQ(::unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_EQ(find_sbxd_socket(""), "/run/sbx/sbxd.sock");
  EXPECT_EQ(*find_agentd_socket(""), "/run/agentd/agentd.sock");
}

TEST(Places, AVariableThatNamesNoSocketIsAnErrorAndNoOtherDaemonIsTaken) {
  ASSERT_EQ(::setenv("HOME", "/home/x", 1), 0);
  ASSERT_EQ(::setenv("SBX_SOCKET", "run/sbxd.sock", 1), 0);
  ASSERT_EQ(::setenv("AGENTD_SOCKET", "./agentd.sock", 1), 0);
  const auto places = choose_places({}, false);
  const auto agentd = find_agentd_socket("");
  AgentConfig configured;
  configured.sbxd_socket = "/b";
  EXPECT_EQ(choose_places(configured, false)->sbxd_socket, "/b");
  EXPECT_EQ(*find_agentd_socket("/given"), "/given");
  ASSERT_EQ(::unsetenv("SBX_SOCKET"), 0);
  ASSERT_EQ(::setenv("AGENTD_SOCKET", "", 1), 0);
  EXPECT_TRUE(find_agentd_socket("")) << "as if it were not set";
  ASSERT_EQ(::unsetenv("AGENTD_SOCKET"), 0);
  ASSERT_FALSE(places);
  ASSERT_FALSE(agentd);
  EXPECT_EQ(places.error().code, sbx::ErrorCode::kInvalid) << "exit code 2";
  EXPECT_EQ(places.error().detail, "SBX_SOCKET is run/sbxd.sock, which is not an absolute path");
  EXPECT_EQ(agentd.error().fix, "give AGENTD_SOCKET an absolute path, or unset it");
}

// Errors and /v1/info show the base URL, so a key in it would be shown.
TEST(Config, ABaseUrlThatCanHoldAKeyIsRefusedAndNotRepeated) {
  for (const char* url :
       {"https://user:KEY@example.com/v1", "https://KEY@example.com", "http://KEY@127.0.0.1:1/v1",
        "https://example.com/v1?api-key=KEY", "https://example.com/v1#KEY"}) {
    const auto config = parse_config(
        "[provider]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"" + std::string(url) + "\"\n",
        "f");
    ASSERT_FALSE(config) << url;
    EXPECT_EQ(config.error().code, sbx::ErrorCode::kInvalid);
    EXPECT_NE(to_string(config.error()).find("provider.base_url"), std::string::npos);
    EXPECT_EQ(to_string(config.error()).find("KEY"), std::string::npos);
    EXPECT_NE(config.error().fix.find("api_key_file"), std::string::npos);
  }
}

TEST(Places, AStateDirectoryIsForOneAgentdAtATime) {
  sbx::test::TemporaryDirectory directory;
  {
    const auto first = lock_state(directory.path());
    ASSERT_TRUE(first) << to_string(first.error());
    const auto second = lock_state(directory.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, sbx::ErrorCode::kHost) << "exit code 1";
    EXPECT_NE(to_string(second.error()).find("another agentd works in " + directory.path()),
              std::string::npos);
    EXPECT_NE(second.error().fix.find("--state-dir"), std::string::npos);
  }
  EXPECT_TRUE(lock_state(directory.path())) << "free again";
  EXPECT_FALSE(lock_state(directory.path() + "/none"));
  const std::string lock = directory.path() + "/agentd.lock";
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", lock.c_str()), 0);
  const auto linked = lock_state(directory.path());
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().detail, lock + " is not a regular file");
  EXPECT_EQ(linked.error().fix, "move it away; a new one is made");
}

TEST(Places, TheStateDirectoryIsOursAloneAndNobodyElses) {
  sbx::test::TemporaryDirectory directory;
  const Places places{directory.path() + "/run/a.sock", "/s", directory.path() + "/deep/state"};
  ASSERT_TRUE(make_places(places));
  struct stat info{};
  ASSERT_EQ(::stat(places.state_dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_TRUE(make_places(places)) << "again";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(places.state_dir.c_str(), 1234, 1234), 0);
    EXPECT_FALSE(make_places(places));
  }
}

mode_t mode_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
}

TEST(Places, AStateDirectoryThatIsThereIsTakenOrRefusedAndNeverChanged) {
  struct Case {
    mode_t mode;
    const char* file;  // in it, or null
    mode_t file_mode;
    bool taken;
  };
  for (const Case& one : {
           Case{0700, "anything", 0644, true},
           Case{0755, nullptr, 0, true},  // as a fresh volume is
           Case{0755, kDatabase, 0600, true},
           Case{0755, kDatabase, 0644, false},
           Case{0755, "anything", 0600, false},  // as /etc is
           Case{0777, nullptr, 0, false},
           Case{01777, nullptr, 0, false},  // as /tmp is
           Case{0770, kDatabase, 0600, false},
       }) {
    sbx::test::TemporaryDirectory directory;
    const Places places{{}, {}, directory.path() + "/state"};
    std::filesystem::create_directory(places.state_dir);
    if (one.file != nullptr) {
      const std::string file = directory.write(std::string("state/") + one.file, "x");
      ASSERT_EQ(::chmod(file.c_str(), one.file_mode), 0);
    }
    ASSERT_EQ(::chmod(places.state_dir.c_str(), one.mode), 0);
    const auto made = make_places(places);
    EXPECT_EQ(made.has_value(), one.taken) << std::oct << one.mode;
    EXPECT_EQ(mode_of(places.state_dir), one.mode);
    if (!made) {
      EXPECT_EQ(made.error().code, sbx::ErrorCode::kHost);
      EXPECT_EQ(made.error().fix,
                "name another with --state-dir; or, where nothing else uses it, chmod 700 " +
                    places.state_dir);
    }
  }
}

}  // namespace
}  // namespace agentd::config

namespace agentd::daemon {
namespace {

// In a process of its own: what is closed so stays closed.
TEST(StartUp, NoOtherProcessOfItsUserReadsItsMemory) {
  sbx::test::TemporaryDirectory directory;
  Arguments arguments;
  arguments.config = directory.write("agentd.toml", "[provider]\nkind = \"replay\"\n");
  arguments.socket = directory.path() + "/a.sock";
  arguments.state_dir = directory.path() + "/state";
  ASSERT_EQ(::prctl(PR_GET_DUMPABLE), 1) << "the control";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kNotStarted = 9;
    ::_exit(start_up(arguments) ? ::prctl(PR_GET_DUMPABLE) : kNotStarted);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(AgentdArguments, AreTakenApart) {
  const auto arguments = parse_arguments(
      {"record", "--out", "f.jsonl", "--socket=/a", "--sbxd-socket", "/b", "--state-dir", "/c"});
  ASSERT_TRUE(arguments) << to_string(arguments.error());
  EXPECT_EQ(arguments->verb, Verb::kRecord);
  EXPECT_EQ(arguments->out + arguments->socket + arguments->sbxd_socket + arguments->state_dir,
            "f.jsonl/a/b/c");
  EXPECT_EQ(parse_arguments({"--check-config"})->verb, Verb::kCheckConfig);
  EXPECT_EQ(parse_arguments({})->verb, Verb::kServe);
}

TEST(AgentdArguments, MistakesAreNamed) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--sock", "/a"},
                                             {"--socket"},
                                             {"--socket", "relative"},
                                             {"serve"},
                                             {"record"},
                                             {"--out", "f"},
                                             {"--socket", "/a", "--socket", "/b"},
                                             {"--config=a", "--config=a"},
                                             {"record", "again", "--out", "f"}}) {
    const auto arguments = parse_arguments(words);
    ASSERT_FALSE(arguments) << words.front();
    EXPECT_EQ(arguments.error().code, sbx::ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace agentd::daemon
