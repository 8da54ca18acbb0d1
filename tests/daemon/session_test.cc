// Sessions through sbxd: files that live on between runs, and who may do what with them when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "tests/daemon/session_fixture.h"

namespace sbx::test {
namespace {

using ::testing::HasSubstr;

class Sessions : public SessionTest {};
SBX_AS_BOTH_CALLERS(Sessions);

TEST_P(Sessions, KeepFilesBetweenRunsAndCalls) {
  const std::string id = create_id();
  const Json first = run_in(id, "echo one > a; mkdir d; ln -s a d/link");
  EXPECT_EQ(first["status"], "ok") << first;
  EXPECT_EQ(first["workspace"]["saved"], true);
  EXPECT_EQ(first["workspace"]["inodes"], 4);
  EXPECT_EQ(put(id, "d/given", "two\n").status, 201);
  const Json second = run_in(id, "cat a d/given; cat d/given > d/made; readlink d/link");
  EXPECT_EQ(second["stdout"], "one\ntwo\na\n");
  EXPECT_EQ(get(id, "d/made").body, "two\n");
  const Json listed = Json::parse(ask("GET", target(id, "/files")).body);
  ASSERT_EQ(listed["files"].size(), 5U) << listed;
  EXPECT_EQ(listed["files"][3]["path"], "d/link");
  EXPECT_EQ(listed["files"][3]["type"], "symlink");
  EXPECT_EQ(ask("DELETE", target(id, "/files/d")).status, 204);
  EXPECT_EQ(run_in(id, "ls -A")["stdout"], "a\n");
  EXPECT_TRUE(wait_for_no_leftovers());
}

TEST_P(Sessions, SayWhatTheyAreAndWhenTheyEnd) {
  const Json made = create({{"limits", {{"work", "1M"}, {"work_inodes", 10}}},
                            {"idle_seconds", 60},
                            {"age_seconds", 120}});
  const std::string id = made["id"];
  EXPECT_EQ(made["limits"]["work"], 1 << 20);
  EXPECT_EQ(made["usage"]["inodes"], 1);
  EXPECT_EQ(made["running"], false);
  (void)run_in(id, "head -c 5000 /dev/zero > f");
  const Json now = Json::parse(ask("GET", target(id)).body);
  EXPECT_EQ(now["usage"]["size"], 8192);
  EXPECT_EQ(now["usage"]["inodes"], 2);
  EXPECT_LE(made["idle_expires_at"], now["idle_expires_at"]);
  EXPECT_EQ(made["expires_at"], now["expires_at"]);
  const Json all = Json::parse(ask("GET", "/v1/sessions").body);
  ASSERT_EQ(all["sessions"].size(), 1U);
  EXPECT_EQ(all["sessions"][0], now);
  EXPECT_EQ(metric("sbxd_sessions"), 1);
}

TEST_P(Sessions, HaveTheirQuotaInsideToo) {
  const std::string id = create_id({{"limits", {{"work", "1M"}, {"work_inodes", 10}}}});
  const Json full = run_in(id, "head -c 5M /dev/zero | tr '\\0' x > f; stat -c %s f");
  EXPECT_EQ(full["stdout"], "1048576\n");
  EXPECT_EQ(full["limits"]["work"], 1 << 20);
  EXPECT_EQ(full["workspace"]["saved"], true);
  EXPECT_EQ(code_of(put(id, "g", "x")), "quota_exceeded");
  EXPECT_EQ(run_in(id, "rm f")["workspace"]["size"], 0);
  EXPECT_EQ(put(id, "g", "x").status, 201);
}

TEST_P(Sessions, WithAWorkspaceThatDoesNotFitTheMemoryAreRefusedTheRun) {
  const std::string id = create_id();
  EXPECT_EQ(put(id, "big", std::string(15 << 20, 'x')).status, 201);
  Json request = shell("true");
  request["limits"] = {{"memory", "16M"}};
  const RawReply reply = ask_run(id, request);
  EXPECT_EQ(reply.status, 422);
  const Json problem = problem_of(reply);
  EXPECT_THAT(problem["detail"], HasSubstr("a workspace of 15M"));
  EXPECT_THAT(problem["detail"], HasSubstr("the memory limit is 16M"));
  EXPECT_EQ(run_in(id, "ls")["stdout"], "big\n") << "with more memory it runs";
}

TEST_P(Sessions, RefuseARunALimitThatIsTheirs) {
  const std::string id = create_id();
  Json request = shell("true");
  request["limits"] = {{"work", "1G"}};
  const Json problem = problem_of(ask_run(id, request));
  EXPECT_EQ(problem["code"], "invalid_value");
  EXPECT_EQ(problem["field"], "limits.work");
  EXPECT_EQ(code_of(ask_run(id, {{"argv", {"/bin/true"}}, {"session", id}})), "unknown_field");
}

TEST_P(Sessions, StreamTheirRunsAsWell) {
  const std::string id = create_id();
  const RawReply reply =
      ask("POST", target(id, "/run?stream=1"), shell("echo live; echo x > f").dump());
  const auto events = events_of(reply.body);
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events.front()["event"], "started");
  EXPECT_EQ(events.back()["event"], "result");
  EXPECT_EQ(events.back()["result"]["workspace"]["saved"], true);
  EXPECT_EQ(get(id, "f").body, "x\n");
}

TEST_P(Sessions, SurviveAKillOfTheDaemon) {
  const std::string id = create_id({{"limits", {{"work", "2M"}}}});
  EXPECT_EQ(run_in(id, "echo kept > f; ln f g")["workspace"]["saved"], true);
  EXPECT_EQ(put(id, "d/up", "loaded").status, 201);
  const Json before = Json::parse(ask("GET", target(id)).body);
  kill();
  start(config());
  const Json after = Json::parse(ask("GET", target(id)).body);
  EXPECT_EQ(after["limits"], before["limits"]);
  EXPECT_EQ(after["usage"], before["usage"]);
  EXPECT_EQ(after["expires_at"], before["expires_at"]);
  EXPECT_EQ(run_in(id, "cat g d/up")["stdout"], "kept\nloaded");
  (void)stop();
  start(config());
  EXPECT_EQ(get(id, "g").body, "kept\n");
}

TEST_P(Sessions, ThatAreDeletedAreGoneWithTheirFiles) {
  const std::string id = create_id();
  (void)run_in(id, "echo x > f");
  const RawReply deleted = ask("DELETE", target(id));
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(Json::parse(deleted.body),
            (Json{{"id", id}, {"deleted", true}, {"run_cancelled", false}}));
  EXPECT_EQ(code_of(ask("GET", target(id))), "session_not_found");
  EXPECT_EQ(code_of(get(id, "f")), "session_not_found");
  EXPECT_EQ(code_of(ask_run(id, shell("true"))), "session_not_found");
  EXPECT_EQ(code_of(ask("DELETE", target(id))), "session_not_found");
  EXPECT_TRUE(wait_for_no_leftovers());
  EXPECT_FALSE(std::filesystem::exists(state_dir() + "/sessions/" + id));
}

TEST_P(Sessions, WhoseDirectoryIsGoneOrShutSaySoWithTheFix) {
  namespace fs = std::filesystem;
  const auto removed = [](const fs::path& path) { fs::remove_all(path); };
  const auto shut = [](const fs::path& path) { fs::permissions(path, fs::perms::none); };
  const auto replaced = [](const fs::path& path) {
    fs::remove_all(path);
    fs::create_symlink("/etc", path);
  };
  const std::vector<std::function<void(const fs::path&)>> mishaps = {removed, shut, replaced};
  for (const auto& befall : mishaps) {
    const std::string id = create_id();
    EXPECT_EQ(put(id, "f", "x").status, 201);
    befall(state_dir() + "/sessions/" + id);
    for (const RawReply& reply : {get(id, "f"), put(id, "g", "x"), ask("GET", target(id, "/files")),
                                  ask("DELETE", target(id, "/files/f"))}) {
      EXPECT_EQ(reply.status, 503) << reply.body;
      EXPECT_EQ(code_of(reply), "host_lacks");
      EXPECT_THAT(problem_of(reply).value("fix", ""), HasSubstr("delete the session"));
    }
    const RawReply ran = ask_run(id, shell("true"));
    ASSERT_EQ(ran.status, 200) << ran.body;
    const Json result = Json::parse(ran.body);
    EXPECT_EQ(result["status"], "sandbox_error");
    EXPECT_EQ(result["error"]["code"], "host") << ran.body;
    EXPECT_THAT(result["error"].value("fix", ""), HasSubstr("delete the session"));
    EXPECT_EQ(ask("DELETE", target(id)).status, 200);
    EXPECT_TRUE(wait_for_no_leftovers()) << log();
  }
}

TEST_P(Sessions, WithoutADirectoryForThemAreRefusedWithTheFix) {
  const std::string id = create_id();
  const std::string place = state_dir() + "/sessions";
  const auto expect_refused = [&](const std::string& fix) {
    for (const RawReply& reply :
         {ask("POST", "/v1/sessions", "{}"), ask("DELETE", target(id)), ask("GET", "/healthz")}) {
      EXPECT_EQ(reply.status, 503) << reply.body;
      EXPECT_EQ(code_of(reply), "host_lacks");
      EXPECT_THAT(problem_of(reply).value("fix", ""), HasSubstr(fix));
    }
  };
  std::filesystem::rename(place, place + "-away");
  expect_refused("move it back");
  EXPECT_EQ(run(shell("true"))["status"], "ok") << "runs of their own need none";
  std::filesystem::rename(place + "-away", place);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  ASSERT_EQ(::chmod(place.c_str(), 0500), 0);
  expect_refused("chmod 700 " + place);
  ASSERT_EQ(::chmod(place.c_str(), 0700), 0);
  EXPECT_EQ(ask("DELETE", target(id)).status, 200);
}

// A run in a thread of its own, which has said something when the constructor returns.
class Running {
 public:
  Running(RawClient client, const std::string& id, const Json& request)
      : client_(std::move(client)) {
    EXPECT_TRUE(
        client_.send(http_request("POST", "/v1/sessions/" + id + "/run?stream=1", request.dump())));
    // The program's own word, not just the head of the answer.
    pollfd readable{client_.fd(), POLLIN, 0};
    std::string seen(65536, '\0');
    while (seen.find("\"stdout\"") == std::string::npos) {
      if (::poll(&readable, 1, 60'000) != 1) break;
      const ssize_t size = ::recv(client_.fd(), seen.data(), seen.size(), MSG_PEEK);
      if (size <= 0) break;
      seen.resize(65536);
    }
  }
  void leave() { client_.close(); }
  // The result; waits for the end.
  [[nodiscard]] Json result() {
    const auto events = events_of(client_.reply().body);
    return events.empty() ? Json() : events.back().value("result", Json());
  }

 private:
  RawClient client_;
};

TEST_P(Sessions, ThatAreDeletedWhileTheyRunSaySoToBoth) {
  const std::string id = create_id();
  Running running(connect(), id, shell("echo ready; echo x > f; sleep 60"));
  Json waiting_request = shell("true");
  waiting_request["wait"] = true;
  auto waiting = std::async(std::launch::async, [&] { return ask_run(id, waiting_request).body; });
  const RawReply deleted = ask("DELETE", target(id));
  EXPECT_EQ(deleted.status, 200);
  EXPECT_EQ(Json::parse(deleted.body)["run_cancelled"], true);
  const Json result = running.result();
  EXPECT_EQ(result["status"], "cancelled");
  EXPECT_EQ(result["workspace"]["saved"], false);
  EXPECT_EQ(result["workspace"]["reason"], "the session was deleted");
  // It came before the deletion and was told of it, or after it.
  EXPECT_THAT(Json::parse(waiting.get())["code"],
              ::testing::AnyOf("session_deleted", "session_not_found"));
  EXPECT_TRUE(wait_for_no_leftovers());
}

TEST_P(Sessions, RunOneAtATimeAndASecondIsRefusedOrWaits) {
  const std::string id = create_id();
  Running running(connect(), id, shell("echo first > f; echo ready; sleep 60"));
  const RawReply refused = ask_run(id, shell("cat f"));
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code_of(refused), "session_busy");
  EXPECT_EQ(refused.field("Retry-After"), "1");
  EXPECT_EQ(Json::parse(ask("GET", target(id)).body)["running"], true);
  Json patient = shell("cat f");
  patient["wait"] = true;
  auto waiting = std::async(std::launch::async, [&] { return ask_run(id, patient).body; });
  running.leave();  // which ends its run
  EXPECT_EQ(Json::parse(waiting.get())["stdout"], "first\n");
}

// No conflict, which waiting would not have met: no room, for now.
TEST_P(Sessions, TellARunWhoseTurnDoesNotComeThatThereIsNoRoom) {
  (void)stop();
  start("image = \"host\"\nqueue_seconds = 1\n");
  const std::string id = create_id();
  Running running(connect(), id, shell("echo ready; sleep 60"));
  Json patient = shell("true");
  patient["wait"] = true;
  const RawReply late = ask_run(id, patient);
  EXPECT_EQ(late.status, 429);
  EXPECT_EQ(late.field("Retry-After"), "1");
  const Json problem = problem_of(late);
  EXPECT_EQ(problem["code"], "too_many_requests");
  EXPECT_EQ(problem["budget"], "session");
  running.leave();
}

TEST_P(Sessions, RefuseFilesCallsWhileARunIsOn) {
  const std::string id = create_id();
  EXPECT_EQ(put(id, "f", "old").status, 201);
  Running running(connect(), id, shell("echo new > f; echo ready; sleep 60"));
  EXPECT_EQ(code_of(put(id, "g", "x")), "session_busy");
  EXPECT_EQ(code_of(get(id, "f")), "session_busy");
  EXPECT_EQ(code_of(ask("GET", target(id, "/files"))), "session_busy");
  EXPECT_EQ(code_of(ask("DELETE", target(id, "/files/f"))), "session_busy");
  running.leave();
  Json patient = shell("true");
  patient["wait"] = true;
  EXPECT_EQ(ask_run(id, patient).status, 200);
  EXPECT_EQ(get(id, "f").body, "new\n");
}

TEST_P(Sessions, WhoseClientLeavesAreSavedAndUsableAtOnce) {
  const std::string id = create_id();
  {
    Running running(connect(), id, shell("echo x > f; echo ready; sleep 60"));
    running.leave();
  }
  Json patient = shell("cat f");
  patient["wait"] = true;
  EXPECT_EQ(Json::parse(ask_run(id, patient).body)["stdout"], "x\n");
}

TEST_P(Sessions, WhoseResultIsReadSlowlyAreFreeAtOnce) {
  const std::string id = create_id();
  RawClient slow = connect();
  ASSERT_TRUE(
      slow.send(http_request("POST", target(id, "/run"),
                             shell("head -c 8M /dev/urandom > /output/big; echo x > f").dump())));
  Json patient = shell("cat f");
  patient["wait"] = true;
  EXPECT_EQ(Json::parse(ask_run(id, patient).body)["stdout"], "x\n");
  EXPECT_EQ(slow.reply().status, 200);
}

TEST_P(Sessions, WhoseUploadIsCutOffKeepTheOldFileAndNothingElse) {
  const std::string id = create_id();
  EXPECT_EQ(put(id, "f", "old").status, 201);
  RawClient client = connect();
  ASSERT_TRUE(client.send("PUT " + target(id, "/files/f") +
                          " HTTP/1.1\r\nHost: sbx\r\nContent-Length: 1000000\r\n\r\nhalf"));
  Json request = shell("true");
  while (ask_run(id, request).status != 409) {
    // Until the upload is seen to be under way: it keeps runs out.
  }
  client.close();
  request["wait"] = true;
  EXPECT_EQ(ask_run(id, request).status, 200);
  EXPECT_EQ(get(id, "f").body, "old");
  EXPECT_TRUE(wait_for_no_leftovers());
}

// The pace alone would let it wait for 20 s.
TEST_P(Sessions, ThatAreDeletedDoNotWaitForAnUploadThatStalls) {
  const std::string id = create_id();
  RawClient client = connect();
  ASSERT_TRUE(client.send("PUT " + target(id, "/files/f") +
                          " HTTP/1.1\r\nHost: sbx\r\nContent-Length: 1000000\r\n\r\nhalf"));
  while (ask_run(id, shell("true")).status != 409) {
    // Until the upload is seen to be under way: it keeps runs out.
  }
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("DELETE", target(id)).status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(10));
  EXPECT_EQ(code_of(client.reply()), "session_deleted");
  EXPECT_TRUE(wait_for_no_leftovers());
}

TEST_P(Sessions, TakeTwoWritersOfOneFileAndKeepOneOfThemWhole) {
  const std::string id = create_id();
  const std::string a(3 << 20, 'a');
  const std::string b(2 << 20, 'b');
  for (int round = 0; round < 5; ++round) {
    auto first = std::async(std::launch::async, [&] { return put(id, "f", a).status; });
    auto second = std::async(std::launch::async, [&] { return put(id, "f", b).status; });
    EXPECT_THAT(first.get(), ::testing::AnyOf(200, 201));
    EXPECT_THAT(second.get(), ::testing::AnyOf(200, 201));
    const std::string kept = get(id, "f").body;
    EXPECT_TRUE(kept == a || kept == b) << kept.size();
  }
  EXPECT_TRUE(wait_for_no_leftovers());
}

TEST_P(Sessions, AreBoundedForOneUser) {
  kill();
  start("image = \"host\"\n[sessions]\nmax_per_peer = 2\n");
  (void)create();
  const std::string id = create_id();
  const RawReply refused = ask("POST", "/v1/sessions", "{}");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(problem_of(refused)["budget"], "sessions.max_per_peer");
  EXPECT_NE(refused.field("Retry-After"), "");
  EXPECT_EQ(ask("DELETE", target(id)).status, 200);
  (void)create();
}

TEST_P(Sessions, ExpireWithATypedAnswerThatSurvivesAKill) {
  const std::string id = create_id({{"idle_seconds", 1}});
  (void)run_in(id, "echo x > f");
  RawReply reply;
  do {
    reply = ask("GET", target(id));  // looking is no use of it
  } while (reply.status == 200);
  EXPECT_EQ(reply.status, 410);
  EXPECT_EQ(problem_of(reply)["code"], "session_expired");
  EXPECT_EQ(problem_of(reply)["reason"], "idle");
  EXPECT_EQ(problem_of(reply)["expired_at"].get<std::string>().size(),
            std::string("2024-05-01T12:00:00.000Z").size());
  while (std::filesystem::exists(state_dir() + "/sessions/" + id)) {
    EXPECT_EQ(code_of(get(id, "f")), "session_expired");
  }
  kill();
  start(config());
  EXPECT_EQ(code_of(ask_run(id, shell("true"))), "session_expired");
  EXPECT_TRUE(wait_for_no_leftovers());
}

TEST_P(Sessions, KeepHostileFilesAndNeverFollowThem) {
  const std::string id = create_id();
  const Json planted = run_in(
      id,
      "ln -s /etc/passwd passwd; ln -s / root; ln -s ../../../../../../etc etc; ln -s loop loop; "
      "mkfifo fifo; touch \"$(printf 'new\\nline')\" \"$(printf '\\377')\" -- -rf; "
      "mkdir -p a/b; ln -s /proc/self/root a/b/c; "
      "name=$(printf '%0255d' 0); touch $name; "
      "d=.; i=0; while [ $i -lt 30 ]; do mkdir $(printf '%0200d' 0) && cd $(printf '%0200d' 0) || "
      "break; i=$((i+1)); done");
  EXPECT_EQ(planted["workspace"]["saved"], true) << planted;
  const std::string refused = planted["workspace"]["refused"].dump();
  EXPECT_THAT(refused, HasSubstr("named pipe"));
  EXPECT_THAT(refused, HasSubstr("path of more than 4095 bytes or 256 components"));
  for (const char* path : {"passwd", "root/etc/passwd", "etc/passwd", "loop", "a/b/c/etc/passwd"}) {
    EXPECT_EQ(code_of(get(id, path)), "not_a_file") << path;
    EXPECT_EQ(code_of(put(id, std::string(path) + "/x", "x")), "not_a_file") << path;
  }
  const Json again = run_in(id, "readlink passwd root etc loop a/b/c; ls | wc -l");
  EXPECT_EQ(again["stdout"], "/etc/passwd\n/\n../../../../../../etc\nloop\n/proc/self/root\n11\n");
  EXPECT_EQ(again["workspace"]["saved"], true);
  EXPECT_EQ(ask("DELETE", target(id)).status, 200);
  EXPECT_TRUE(wait_for_no_leftovers()) << log();
}

TEST_P(Sessions, AppearInTheAuditFileOfTheirRuns) {
  const std::string id = create_id();
  (void)run_in(id, "true");
  EXPECT_THAT(read_text(audit_file()), HasSubstr(id));
}

}  // namespace
}  // namespace sbx::test
