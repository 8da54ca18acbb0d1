// How sbxd begins and ends: what it refuses, what it gives up, how it drains, what its death
// leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/daemon/life_fixture.h"

namespace sbx::test {
namespace {

using ::testing::HasSubstr;

class DaemonLife : public DaemonLifeTest {
 protected:
  [[nodiscard]] Finished verify_audit() const {
    return run_process(ground().command({"audit", "verify", audit_file()}), ground().options());
  }
};
SBX_AS_BOTH_CALLERS(DaemonLife);

TEST_P(DaemonLife, ItHasNoPrivilegeWhenItServes) {
  start();
  const std::string uid = std::to_string(ground().service_uid());
  EXPECT_EQ(status_field(pid(), "Uid"), uid + "\t" + uid + "\t" + uid + "\t" + uid);
  EXPECT_NE(uid, "0");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(status_field(pid(), set), "0000000000000000") << set;
  }
  EXPECT_EQ(status_field(pid(), "NoNewPrivs"), "1");
  if (!is_user() && ::geteuid() == 0) {
    EXPECT_EQ(status_field(pid(), "CapBnd"), "0000000000000000");
    EXPECT_EQ(status_field(pid(), "Groups"), " ");
  }
  EXPECT_EQ(run_python("import os; print(os.getuid())")["stdout"], "65534\n");
}

TEST_P(DaemonLife, OneThreadServesAndOnlyTheSpawnerIsItsChild) {
  start();
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  EXPECT_EQ(children[0].first, "sbx-spawner");
  EXPECT_EQ(status_field(children[0].second, "Threads"), "1");
}

class DaemonStartedByRoot : public DaemonLife {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root becomes somebody else";
    DaemonLife::SetUp();
  }
};
INSTANTIATE_TEST_SUITE_P(Callers, DaemonStartedByRoot, ::testing::Values(Caller::kSelf),
                         caller_name);

TEST_P(DaemonStartedByRoot, AMissingUserIsAnErrorWithTheFix) {
  const Finished finished = start_and_fail("user = \"no-such-user-here\"\n");
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("useradd --system"));
  EXPECT_EQ(start_and_fail("user = \"root\"\n").exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(state_dir())) << "nothing is made for a start that fails";
}

TEST_P(DaemonLife, AMistakeInTheConfigurationNamesItsPlace) {
  const Finished finished = start_and_fail("\nmax_runing = 3\n");
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("sbxd.toml:"));
  EXPECT_THAT(finished.err, HasSubstr("key 'max_runing': unknown key"));
  const Finished checked = run_process(ground().command({"--check-config"}), ground().options());
  EXPECT_EQ(checked.exit_code, 2);
}

TEST_P(DaemonLife, AHardLimitUnderWhichNothingRunsIsNamedAtTheStart) {
  ground().write_configuration("");
  const std::vector<std::string> words =
      ground().command({"--socket", ground().socket(), "--state-dir", state_dir()});
  for (const char* const limit :
       {"ulimit -n 64", "ulimit -s 64", "ulimit -d 16384", "ulimit -v 24576"}) {
    std::vector<std::string> limited{"/bin/bash", "-c", std::string(limit) + R"(; exec "$0" "$@")"};
    limited.insert(limited.end(), words.begin(), words.end());
    const Finished finished = run_process(limited, ground().options());
    EXPECT_EQ(finished.exit_code, 1) << limit << finished.err;
    EXPECT_THAT(finished.err, testing::AllOf(HasSubstr("hard limit"), HasSubstr("fix: "))) << limit;
    EXPECT_FALSE(std::filesystem::exists(state_dir())) << limit;
  }
}

TEST_P(DaemonLife, LimitsThatAreJustEnoughAreEnough) {
  ground().set_limits(
      "ulimit -n 96; ulimit -s 256; ulimit -f 4096; ulimit -d 196608; ulimit -v 262144");
  start();
  const RawReply reply = ask("POST", "/v1/run", R"j({"language":"python","code":"print(6*7)"})j");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(Json::parse(reply.body)["stdout"], "42\n") << reply.body;
}

// write(2) says it to sbxd; a program is ended by it, as anywhere.
TEST_P(DaemonLife, TheSignalOfALimitOnFilesEndsRunsAndNotIt) {
  std::vector<std::string> words{"/bin/bash", "-c",
                                 R"(ulimit -f 0; exec "$@" >)" + directory().path() + "/f", "sbxd"};
  ground().write_configuration("");
  for (std::string& word : ground().command({"--print-config"})) words.push_back(std::move(word));
  EXPECT_EQ(run_process(words, ground().options()).exit_code, 1);
  start();
  const Json ended = run({{"argv", {"/bin/bash", "-c", "exec dd if=/dev/zero of=/tmp/f bs=64k"}},
                          {"limits", {{"fsize", "1M"}}}});
  EXPECT_EQ(ended["signal"], SIGXFSZ) << ended.dump();
}

TEST_P(DaemonLife, OneUserCannotUseUpFewDescriptors) {
  ground().set_limits("ulimit -n 256");
  start();
  EXPECT_THAT(log(), HasSubstr("they are lowered to"));
  const Json admission = Json::parse(ask("GET", "/v1/info").body)["admission"];
  EXPECT_EQ(admission["max_connections"], 29);
  ASSERT_EQ(admission["max_connections_per_peer"], 14);
  EXPECT_EQ(admission["max_running"], 1);
  ASSERT_TRUE(wait_for_metric("sbxd_connections", 1)) << "the one that asks";
  std::vector<RawClient> all;
  for (int i = 0; i < 14; ++i) {
    all.push_back(connect());
    EXPECT_EQ(all.back().ask(http_request("GET", "/healthz")).status, 200) << i;
  }
  RawClient beyond = connect();
  EXPECT_EQ(beyond.reply().status, 429);
  EXPECT_LT(
      std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(pid()) + "/fd"),
                    std::filesystem::directory_iterator()),
      128)
      << "half of them are for others";
  all.clear();
  ASSERT_TRUE(wait_for_metric("sbxd_connections", 1)) << "may itself be refused at first";
  EXPECT_GE(metric("sbxd_connections_refused_total{key=\"max_connections_per_peer\"}"), 1);
}

// What is right in itself, and cannot be meant or is not there.
TEST_P(DaemonLife, TheCheckSaysWhatTheStartWouldSay) {
  for (const char* mistaken :
       {"\n[sessions]\nmax = 0\n", "\nmax_queued = 1\nmax_queued_per_peer = 2\n",
        "\nimage = \"nowhere\"\n", "\nprofiles = [\"/nowhere.toml\"]\n",
        "\n[ceilings]\nstdout_bytes = \"100M\"\n", "\n[ceilings]\nmemory = \"1M\"\n",
        "\n[ceilings]\nwall_seconds = 0.01\n"}) {
    const Finished started = start_and_fail(mistaken);
    const Finished checked = run_process(ground().command({"--check-config"}), ground().options());
    EXPECT_NE(started.exit_code, 0) << mistaken;
    EXPECT_EQ(checked.exit_code, started.exit_code) << mistaken;
    EXPECT_EQ(checked.err, started.err) << mistaken;
    EXPECT_THAT(checked.err, testing::ContainsRegex("sbxd.toml:[0-9]+: key '")) << mistaken;
  }
  ground().write_configuration("memory_budget = \"900000G\"\nimage = \"host\"\n");
  const Finished warned = run_process(ground().command({"--check-config"}), ground().options());
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("warning: "));
  EXPECT_THAT(warned.err, HasSubstr("key 'memory_budget': 900000G is more than"));
}

TEST_P(DaemonLife, TheLeastCeilingsLetItStartAndRun) {
  start("\n[ceilings]\nmemory = \"4M\"\nwall_seconds = 1\nnofile = 16\n");
  const Json result = run({{"argv", {"/bin/true"}}});
  EXPECT_EQ(result["limits"]["memory"], 4 << 20);
  EXPECT_EQ(result["limits"]["wall_seconds"], 1);
  // A busy host may take longer than that second.
  EXPECT_TRUE(result["status"] == "ok" || result["status"] == "timeout") << result.dump();
}

// A host's ceilings may be below what the profiles have: they bind, and keep nothing from running.
TEST_P(DaemonLife, ItStartsUnderCeilingsBelowTheDefaults) {
  ground().set_runtime(
      "max_memory = \"64M\"\nmax_pids = 10\nmax_cpus = 0.25\nmax_wall_seconds = 5\n");
  start();
  const Finished checked = run_process(ground().command({"--check-config"}), ground().options());
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const Json limits = run({{"argv", {"/bin/true"}}})["limits"];
  EXPECT_EQ(limits["memory"], 64 << 20);
  EXPECT_EQ(limits["pids"], 10);
  EXPECT_EQ(limits["cpus"], 0.25);
  EXPECT_EQ(limits["wall_seconds"], 5);
  const RawReply asked =
      ask("POST", "/v1/run", R"({"argv":["/bin/true"],"limits":{"memory":"128M"}})");
  EXPECT_EQ(problem_of(asked)["code"], "above_ceiling");
}

TEST_P(DaemonLife, AMissingImageIsAnErrorWithTheFix) {
  const Finished finished = start_and_fail("image = \"nowhere\"\n");
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("no image 'nowhere'"));
  EXPECT_THAT(finished.err, HasSubstr("fix: "));
}

TEST_P(DaemonLife, ARefusedStartLeavesNothing) {
  const auto is_left = [&](const std::string& what) {
    return std::filesystem::exists(directory().path() + "/" + what);
  };
  EXPECT_EQ(start_and_fail("\nmax_runing = 1\n").exit_code, 2);
  EXPECT_EQ(start_and_fail("image = \"nowhere\"\n").exit_code, 1);
  EXPECT_FALSE(is_left("state"));
  EXPECT_FALSE(is_left("sbxd.sock.lock"));
  // Found out before anything has been made that root could not take back.
  const std::string head = audit_file() + ".head";
  std::filesystem::create_directories(head);
  ASSERT_EQ(
      ::chown((state_dir() + "/audit").c_str(), ground().service_uid(), ground().service_uid()), 0);
  ASSERT_EQ(::chmod((state_dir() + "/audit").c_str(), 0700), 0);
  ASSERT_EQ(::chown(state_dir().c_str(), is_user() ? ground().service_uid() : ::geteuid(), 0), 0);
  Finished finished = start_and_fail("");
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("audit.jsonl.head"));
  for (const char* what :
       {"state/sessions", "state/audit/audit.jsonl", "sbxd.sock", "sbxd.sock.lock"}) {
    EXPECT_FALSE(is_left(what)) << what;
  }
  // Found out last, after all has been made: no head is so long.
  std::filesystem::remove(head);
  (void)directory().write("state/audit/audit.jsonl.head", std::string(5000, 'x'));
  ASSERT_EQ(::chown(head.c_str(), ground().service_uid(), ground().service_uid()), 0);
  finished = start_and_fail("");
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("audit.jsonl.head"), HasSubstr("move it away")));
  EXPECT_FALSE(is_left("state/audit/audit.jsonl"));
  EXPECT_FALSE(is_left("state/sessions/.lock"));
  if (!is_user()) return;  // root has given the rest away, and is root no more
  for (const char* what : {"state/sessions", "sbxd.sock", "sbxd.sock.lock"}) {
    EXPECT_FALSE(is_left(what)) << what;
  }
}

TEST_P(DaemonLife, ASecondOneOnTheSamePlacesIsRefused) {
  start();
  const Finished finished = run_process(
      ground().command({"--socket", socket(), "--state-dir", state_dir()}), ground().options());
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(ask("GET", "/healthz").status, 200) << "the first one goes on";
  const Finished other = run_process(
      ground().command({"--socket", directory().path() + "/other", "--state-dir", state_dir()}),
      ground().options());
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("in use by another sbxd"));
  EXPECT_FALSE(std::filesystem::exists(directory().path() + "/other")) << "no socket stays";
  // The audit file is in use also where the directory of the sessions was taken away.
  std::filesystem::rename(state_dir() + "/sessions", state_dir() + "/away");
  const Finished third = run_process(
      ground().command({"--socket", directory().path() + "/other", "--state-dir", state_dir()}),
      ground().options());
  EXPECT_EQ(third.exit_code, 1);
  EXPECT_THAT(third.err, HasSubstr("in use by another sbxd"));
  EXPECT_FALSE(std::filesystem::exists(directory().path() + "/other"));
  EXPECT_FALSE(std::filesystem::exists(state_dir() + "/sessions"));
}

TEST_P(DaemonLife, RunsMayEndBeforeItDoes) {
  start();
  RawClient client = begin(R"({"argv":["/bin/sh","-c","sleep 0.5; echo done"]})");
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  signal(SIGTERM);
  ASSERT_TRUE(wait_for_health(503));
  const RawReply late = ask("POST", "/v1/run", kSleep);
  EXPECT_EQ(late.status, 503) << late.body;
  EXPECT_EQ(problem_of(late)["code"], "shutting_down");
  EXPECT_GE(std::stoi(late.field("Retry-After")), 1);
  const RawReply reply = client.reply();
  EXPECT_EQ(Json::parse(reply.body)["stdout"], "done\n");
  EXPECT_EQ(wait_for_end().exit_code, 0);
}

TEST_P(DaemonLife, RunsThatTakeLongerThanTheDrainTimeAreCancelledAndSayIt) {
  start("drain_seconds = 1\n");
  RawClient client = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  signal(SIGTERM);
  const RawReply reply = client.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(Json::parse(reply.body)["status"], "cancelled");
  EXPECT_EQ(wait_for_end().exit_code, 0);
}

TEST_P(DaemonLife, ASecondSignalCancelsAtOnce) {
  start("drain_seconds = 1000\n");
  RawClient client = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  signal(SIGTERM);
  ASSERT_TRUE(wait_for_health(503));
  signal(SIGTERM);
  const Json result = Json::parse(client.reply().body);
  EXPECT_EQ(result["status"], "cancelled") << result["error"];
  EXPECT_EQ(wait_for_end().exit_code, 0);
}

// About 800 KiB more than a socket holds.
TEST_P(DaemonLife, ASecondSignalWaitsForNobodyWhoDoesNotRead) {
  start("drain_seconds = 1000\n");
  const RawClient unread = begin(
      R"({"argv":["/bin/sh","-c","head -c 1000000 /dev/zero"],"limits":{"stdout_bytes":"1M"}})");
  ASSERT_TRUE(wait_for_metric("sbxd_runs_total{status=\"ok\",language=\"none\"}", 1));
  RawClient read = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  signal(SIGTERM);
  ASSERT_TRUE(wait_for_health(503));
  const auto asked = std::chrono::steady_clock::now();
  signal(SIGTERM);
  EXPECT_EQ(Json::parse(read.reply().body)["status"], "cancelled") << "who reads has his answer";
  EXPECT_EQ(wait_for_end().exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(5)) << log();
}

TEST_P(DaemonLife, WhoWaitsWhenItEndsIsToldSo) {
  start("max_running = 1\n");
  const RawClient running = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  RawClient waiting = begin(R"({"argv":["/bin/true"]})");
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1));
  signal(SIGTERM);
  const RawReply reply = waiting.reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(problem_of(reply)["code"], "shutting_down");
  signal(SIGTERM);
  EXPECT_EQ(wait_for_end().exit_code, 0);
}

TEST_P(DaemonLife, ItsDeathEndsItsRunsAndItsNextStartRemovesWhatTheyLeft) {
  start();
  std::vector<RawClient> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(begin(kSleep));
  ASSERT_TRUE(wait_for_metric("sbxd_running", 5));
  (void)run({{"argv", {"/bin/true"}}});
  kill();
  const Things left = ground().runs();
  EXPECT_FALSE(left.empty()) << "control: there is something to remove";
  start();
  for (const std::string& thing : ground().runs()) EXPECT_EQ(left.count(thing), 0U) << thing;
  EXPECT_GE(metric("sbxd_reaped_total{kind=\"record\"}"), 5);
  const Finished verified = verify_audit();
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_THAT(read_text(audit_file()), HasSubstr("\"event\":\"reaped\""));
}

TEST_P(DaemonLife, AnEditOfTheAuditFileIsFound) {
  start();
  for (int i = 0; i < 3; ++i) (void)run({{"argv", {"/bin/true"}}});
  (void)stop();
  EXPECT_EQ(verify_audit().exit_code, 0);
  std::string text = read_text(audit_file());
  const std::size_t at = text.find("\"status\":\"ok\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 13, "\"status\":\"no\"");
  (void)directory().write("state/audit/audit.jsonl", text);
  const Finished verified = verify_audit();
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, HasSubstr("NOT INTACT: line 2"));
}

// What systemd does: a listening socket as descriptor 3, and where to say READY.
TEST_P(DaemonLife, ItTakesASocketFromSystemdAndSaysWhenItIsReady) {
  const std::string path = directory().path() + "/passed.sock";
  const std::string notify = directory().path() + "/notify.sock";
  const UniqueFd told(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  notify.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(told.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::chmod(notify.c_str(), 0666), 0);
  // A shell cannot make the socket: python3 does, and becomes sbxd with it as descriptor 3.
  const std::string launcher =
      "import os, socket, sys\n"
      "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
      "os.chmod(sys.argv[1], 0o666)\n"
      "os.dup2(s.fileno(), 3, True)\n"
      "os.dup2(os.open('/etc/passwd', os.O_RDONLY), 200, True)\n"
      "os.environ['LISTEN_PID'] = str(os.getpid()); os.environ['LISTEN_FDS'] = '1'\n"
      "os.execv(sys.argv[2], sys.argv[2:])\n";
  ground().write_configuration({});
  std::vector<std::string> words{"/usr/bin/python3", "-c", launcher, path};
  for (std::string& word : ground().command({"--state-dir", state_dir()})) {
    words.push_back(std::move(word));
  }
  ProcessOptions options = ground().options();
  options.environment.push_back("NOTIFY_SOCKET=" + notify);
  Process process(words, options);
  char text[64] = {};
  ASSERT_GT(::recv(told.get(), text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "READY=1");
  const std::string inherited = "/proc/" + std::to_string(process.pid()) + "/fd/200";
  EXPECT_FALSE(std::filesystem::is_symlink(inherited)) << "what its starter had open is not its";
  RawClient client = RawClient::to_unix(path);
  EXPECT_EQ(client.ask(http_request("GET", "/healthz")).status, 200);
  process.signal(SIGTERM);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(std::filesystem::exists(path)) << "the socket is systemd's";
}

}  // namespace
}  // namespace sbx::test
