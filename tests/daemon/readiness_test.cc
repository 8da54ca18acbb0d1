// What keeps sbxd from starting runs: a spawner that is gone or stopped, an audit file that was
// moved away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "tests/daemon/life_fixture.h"

namespace sbx::test {
namespace {

using ::testing::HasSubstr;

class DaemonReadiness : public DaemonLifeTest {};
SBX_AS_BOTH_CALLERS(DaemonReadiness);

TEST_P(DaemonReadiness, WithoutItsSpawnerItEndsWithAFailure) {
  start();
  RawClient client = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGKILL), 0);
  const RawReply reply = client.reply();
  ASSERT_EQ(reply.status, 200);
  const Json result = Json::parse(reply.body);
  EXPECT_EQ(result["status"], "sandbox_error");
  EXPECT_EQ(result["ok"], false);
  EXPECT_EQ(wait_for_end().exit_code, 1);
  EXPECT_THAT(log(), HasSubstr("the spawner died"));
}

// Stopped, not dead: nobody is told. Runs are answered all the same, and so is everything else.
TEST_P(DaemonReadiness, AStoppedSpawnerHoldsUpNoAnswerForEver) {
  start();
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGSTOP), 0);
  RawClient first = begin(kSleep);
  RawClient second = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_running", 2));
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  for (RawClient* const client : {&first, &second}) {
    const RawReply reply = client->reply();
    ASSERT_EQ(reply.status, 200);
    const Json result = Json::parse(reply.body);
    EXPECT_EQ(result["status"], "sandbox_error");
    EXPECT_EQ(result["error"]["step"], "spawner") << reply.body;
    EXPECT_EQ(result["error"]["errno"], ETIMEDOUT);
  }
  EXPECT_EQ(metric("sbxd_running"), 0);
  const RawReply health = ask("GET", "/healthz");
  EXPECT_EQ(health.status, 503);
  const Json problem = problem_of(health);
  EXPECT_EQ(problem["code"], "sandbox_unavailable");
  EXPECT_THAT(problem.value("detail", ""), HasSubstr("is silent"));
  EXPECT_THAT(problem.value("fix", ""), HasSubstr("see whether something stops it"));
  const auto asked = std::chrono::steady_clock::now();
  const RawReply refused = ask("POST", "/v1/run", kSleep);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(10)) << "at once";
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.field("Retry-After"), "5");
  EXPECT_EQ(problem_of(refused)["code"], "sandbox_unavailable");
  ASSERT_EQ(::kill(children[0].second, SIGCONT), 0);
  ASSERT_TRUE(wait_for_health(200));
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok") << "what came before is over";
}

// No run can come to its end, and no other gets its place.
TEST_P(DaemonReadiness, AStoppedSpawnerIsTheErrorOfRunsUnderWayAndRefusesWhatWaits) {
  start("max_running = 1\n");
  RawClient running =
      begin(R"({"language":"bash","code":"echo on; sleep 1000","limits":{"wall_seconds":2}})");
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  RawClient waiting = begin(kSleep);
  ASSERT_TRUE(wait_for_metric("sbxd_queued", 1));
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGSTOP), 0);
  const RawReply reply = running.reply();
  ASSERT_EQ(reply.status, 200);
  const Json result = Json::parse(reply.body);
  EXPECT_EQ(result["status"], "sandbox_error");
  EXPECT_EQ(result["error"]["code"], "host");
  EXPECT_EQ(result["error"]["step"], "spawner") << reply.body;
  EXPECT_THAT(result["error"].value("fix", ""), HasSubstr("see whether something stops it"));
  const RawReply refused = waiting.reply();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(problem_of(refused)["code"], "sandbox_unavailable");
  ASSERT_EQ(::kill(children[0].second, SIGCONT), 0);
  ASSERT_TRUE(wait_for_health(200));
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
}

TEST_P(DaemonReadiness, AStoppedSpawnerIsNoticedWithoutARun) {
  start();
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGSTOP), 0);
  EXPECT_TRUE(wait_for_health(503));
  ASSERT_EQ(::kill(children[0].second, SIGCONT), 0);
  EXPECT_TRUE(wait_for_health(200));
}

// Nor the end: what a session's files are written into lies in the stopped one's queue.
TEST_P(DaemonReadiness, AStoppedSpawnerDoesNotHoldUpTheEnd) {
  start();
  const std::string session = Json::parse(ask("POST", "/v1/sessions", "{}").body)["id"];
  const std::string more_than_a_pipe(1U << 20, 'x');
  ASSERT_EQ(ask("PUT", "/v1/sessions/" + session + "/files/f", more_than_a_pipe).status, 201);
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGSTOP), 0);
  RawClient client = connect();
  ASSERT_TRUE(client.send(http_request("POST", "/v1/sessions/" + session + "/run", kSleep)));
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  signal(SIGTERM);
  ASSERT_TRUE(wait_for_health(503)) << "the first signal was taken before the second";
  signal(SIGTERM);
  EXPECT_EQ(wait_for_end().exit_code, 0);
}

// Well before its patience of 20 s with the spawner is over.
TEST_P(DaemonReadiness, AStoppedSpawnerHoldsUpNeitherTheDrainNorADeletion) {
  start("drain_seconds = 1\n");
  const std::string id = Json::parse(ask("POST", "/v1/sessions", "{}").body)["id"];
  const auto children = children_of(pid());
  ASSERT_EQ(children.size(), 1U);
  ASSERT_EQ(::kill(children[0].second, SIGSTOP), 0);
  RawClient client = connect();
  ASSERT_TRUE(client.send(http_request("POST", "/v1/sessions/" + id + "/run", kSleep)));
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id).status, 200);
  EXPECT_FALSE(std::filesystem::exists(state_dir() + "/sessions/" + id)) << "also after a restart";
  EXPECT_EQ(ask("GET", "/v1/sessions/" + id).status, 404);
  signal(SIGTERM);
  EXPECT_EQ(wait_for_end().exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5 + 1 + 10));
}

TEST_P(DaemonReadiness, AnImageThatIsGoneIsToldByHealthUntilItIsBack) {
  if (!std::filesystem::exists("/var/lib/sbx/images/default/current")) GTEST_SKIP() << "no image";
  ASSERT_EQ(::chmod(directory().path().c_str(), 0755),
            0);  // an image lies where nobody else may write
  const std::string link = directory().path() + "/images/default";
  std::filesystem::create_directory(directory().path() + "/images");
  std::filesystem::create_symlink("/var/lib/sbx/images/default", link);
  ground().set_runtime("image_dir = \"" + directory().path() + "/images\"\n");
  start();
  std::filesystem::remove(link);
  const RawReply health = ask("GET", "/healthz");
  EXPECT_EQ(health.status, 503);
  const Json problem = problem_of(health);
  EXPECT_EQ(problem["code"], "host_lacks");
  EXPECT_THAT(problem.value("detail", ""), HasSubstr("no image 'default' in " + link));
  EXPECT_THAT(problem.value("fix", ""), HasSubstr("scripts/image"));
  for (const RawReply& refused : {ask("POST", "/v1/run", kSleep), ask("GET", "/v1/info"), health}) {
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.field("Retry-After"), "5");
    EXPECT_EQ(problem_of(refused)["code"], "host_lacks");
  }
  EXPECT_THAT(log(), HasSubstr("its image cannot be opened"));
  std::filesystem::create_symlink("/var/lib/sbx/images/default", link);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_THAT(log(), HasSubstr("can be opened again"));
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
}

TEST_P(DaemonReadiness, ARuntimeDirectoryThatIsGoneIsToldByHealth) {
  const std::string runtime = directory().path() + "/run";
  start();
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok") << "control";
  std::filesystem::remove_all(runtime);
  for (const RawReply& refused : {ask("POST", "/v1/run", kSleep), ask("GET", "/healthz")}) {
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(problem_of(refused)["code"], "host_lacks");
    EXPECT_THAT(problem_of(refused).value("detail", ""), HasSubstr(runtime + " was removed"));
  }
}

TEST_P(DaemonReadiness, NoRunStartsWhileTheAuditFileIsNotInItsPlace) {
  start();
  std::filesystem::rename(audit_file(), audit_file() + ".old");
  const Json problem = problem_of(ask("POST", "/v1/run", kSleep));
  EXPECT_EQ(metric("sbxd_audit_healthy"), 0);
  EXPECT_EQ(ask("GET", "/healthz").status, 503);
  EXPECT_EQ(problem["code"], "audit_unavailable");
  EXPECT_THAT(problem.value("fix", ""), HasSubstr("move both back"));
  EXPECT_THAT(log(), HasSubstr("audit lines would be lost"));
  std::filesystem::rename(audit_file() + ".old", audit_file());
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(run({{"argv", {"/bin/true"}}})["status"], "ok");
}

TEST_P(DaemonReadiness, AMovedAuditFileIsNoticedWithoutARun) {
  start("reaper_seconds = 1\n");
  std::filesystem::rename(audit_file(), audit_file() + ".old");
  ASSERT_TRUE(wait_for_metric("sbxd_audit_healthy", 0));
  EXPECT_THAT(log(), HasSubstr("audit lines would be lost"));
}

}  // namespace
}  // namespace sbx::test
