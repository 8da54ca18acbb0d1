// One run through sbxd: what comes back, live and at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/base64.h"
#include "tests/daemon/fixture.h"

namespace sbx::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DaemonRun : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (!IsSkipped()) start(config());
  }
  [[nodiscard]] virtual std::string config() const { return {}; }
};
SBX_AS_BOTH_CALLERS(DaemonRun);

TEST_P(DaemonRun, AnswersWithTheResult) {
  const RawReply reply = ask("POST", "/v1/run", python("print(6*7)").dump());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Content-Type"), "application/json");
  const Json result = Json::parse(reply.body);
  EXPECT_EQ(result["id"], reply.field("Sbx-Run-Id"));
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["stdout"], "42\n");
  EXPECT_EQ(result["language"], "python");
  EXPECT_EQ(result["error"], nullptr);
}

TEST_P(DaemonRun, AFailureOfTheProgramIsAResult) {
  const Json result = run_python("import sys; print('partial'); sys.exit(3)");
  EXPECT_EQ(result["status"], "exit");
  EXPECT_EQ(result["exit_code"], 3);
  EXPECT_EQ(result["stdout"], "partial\n");
  EXPECT_EQ(run_python("import os; os.kill(os.getpid(), 9)")["status"], "signal");
  EXPECT_EQ(run_python("x = bytearray(10**10)")["ok"], false);
  EXPECT_EQ(run({{"argv", {"/no/such/program"}}})["exit_code"], 127);
}

TEST_P(DaemonRun, EveryFieldOfTheRequestReachesTheProgram) {
  const Json request = {{"language", "py"}, {"code", ""}};
  EXPECT_EQ(problem_of(ask("POST", "/v1/run", request.dump()))["code"], "unknown_language");
  const Json result =
      run({{"language", "python"},
           {"code",
            "import os, sys\n"
            "print(sys.argv[1:], os.environ['K'], input())\n"
            "print(open('/input/d.txt').read(), os.getcwd())"},
           {"args", {"a b", "c"}},
           {"env", {{"K", "v w"}}},
           {"stdin", "from stdin\n"},
           {"files", {{{"name", "d.txt"}, {"content_base64", encode_base64("data")}}}}});
  EXPECT_EQ(result["stdout"], "['a b', 'c'] v w from stdin\ndata /work\n") << result["stderr"];
}

TEST_P(DaemonRun, TheAnswerEchoesTheLimitsThatWereApplied) {
  const Json result = run({{"argv", {"/bin/true"}},
                           {"limits", {{"memory", "64M"}, {"pids", 8}, {"wall_seconds", 2.5}}}});
  EXPECT_EQ(result["limits"]["memory"], 64 * 1024 * 1024);
  EXPECT_EQ(result["limits"]["pids"], 8);
  EXPECT_EQ(result["limits"]["wall_seconds"], 2.5);
  EXPECT_EQ(result["limits"]["tmp"], 64 * 1024 * 1024) << "the profile's";
}

TEST_P(DaemonRun, ALimitThatEndsTheRunIsSaid) {
  const Json slow = run({{"argv", {"/bin/sleep", "60"}}, {"limits", {{"wall_seconds", 0.2}}}});
  EXPECT_EQ(slow["status"], "timeout");
  EXPECT_EQ(slow["timed_out"], true);
  const Json large = run({{"language", "python"},
                          {"code", "x = bytearray(200 * 1024 * 1024)"},
                          {"limits", {{"memory", "64M"}}}});
  EXPECT_EQ(large["status"], "oom");
  EXPECT_THAT(large["limits_hit"].get<std::vector<std::string>>(), Contains("memory"));
}

TEST_P(DaemonRun, FilesComeBackAsAsked) {
  Json request = python(
      "open('/output/a.csv','w').write('x,y')\n"
      "import os; os.mkdir('/output/d')\n"
      "open('/output/d/b.bin','wb').write(bytes(range(256)))\n"
      "os.symlink('/etc/passwd','/output/link')");
  const Json content = run(request);
  ASSERT_EQ(content["files"].size(), 2U) << content;
  EXPECT_EQ(content["files"][0]["path"], "a.csv");
  EXPECT_EQ(content["files"][0]["media_type"], "text/csv");
  EXPECT_EQ(decode_base64(content["files"][0]["content_base64"].get<std::string>()), "x,y");
  EXPECT_EQ(content["files"][1]["path"], "d/b.bin");
  EXPECT_EQ(content["refused"][0]["path"], "link");
  request["collect"] = "list";
  const Json list = run(request);
  EXPECT_EQ(list["files"].size(), 2U);
  EXPECT_FALSE(list["files"][0].contains("content_base64"));
  request["collect"] = "none";
  EXPECT_TRUE(run(request)["files"].empty());
}

// 48 MiB of files, 64 MiB as base64: none of it is in the daemon's memory at one time.
TEST_P(DaemonRun, LargeFilesGoThroughASmallDaemon) {
  const double before = metric("process_resident_memory_bytes");
  const Json result = run({{"language", "python"},
                           {"code",
                            "import os\n"
                            "for i in range(3):\n"
                            "  with open(f'/output/{i}','wb') as f:\n"
                            "    for j in range(16): f.write(bytes([i]) * 1024 * 1024)"},
                           {"limits", {{"memory", "512M"}, {"files_bytes", "64M"}}}});
  ASSERT_EQ(result["files"].size(), 3U) << result["refused"];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto content = decode_base64(result["files"][i]["content_base64"].get<std::string>());
    ASSERT_TRUE(content);
    EXPECT_EQ(*content, std::string(16U << 20, static_cast<char>(i)));
  }
  EXPECT_LT(metric("process_resident_memory_bytes") - before, 16e6);
}

// What the client reads until `text` has come.
std::string read_until(const RawClient& client, std::string_view text) {
  std::string seen;
  while (seen.find(text) == std::string::npos) {
    char byte = 0;
    if (::read(client.fd(), &byte, 1) != 1) {
      ADD_FAILURE() << "it ended with: " << seen;
      break;
    }
    seen += byte;
  }
  return seen;
}

TEST_P(DaemonRun, OutputArrivesWhileTheProgramRuns) {
  RawClient client = connect();
  ASSERT_TRUE(client.send(
      http_request("POST", "/v1/run?stream=1",
                   python("import time\nprint('first', flush=True)\ntime.sleep(1000)").dump())));
  (void)read_until(client, "first");
  EXPECT_EQ(metric("sbxd_running"), 1);
}

TEST_P(DaemonRun, AStreamIsNumberedAndEndsWithTheResult) {
  RawClient client = connect();
  const RawReply reply =
      client.ask(http_request("POST", "/v1/run?stream=1", python("print('first')").dump()));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Content-Type"), "application/x-ndjson");
  const std::vector<Json> events = events_of(reply.body);
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events.front()["event"], "started");
  EXPECT_EQ(events.front()["id"], reply.field("Sbx-Run-Id"));
  EXPECT_EQ(events.front()["limits"]["pids"], 64);
  EXPECT_EQ(events.back()["event"], "result");
  EXPECT_EQ(events.back()["result"]["stdout"], "first\n");
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["seq"], i);
}

// The program goes on for ever; the client sees its output and leaves, which ends it.
TEST_P(DaemonRun, AClientThatLeavesCancelsItsRun) {
  {
    RawClient client = connect();
    ASSERT_TRUE(client.send(http_request(
        "POST", "/v1/run?stream=1",
        python("import time\nprint('started', flush=True)\ntime.sleep(1000)").dump())));
    ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  }
  EXPECT_TRUE(wait_for_metric("sbxd_runs_total{status=\"cancelled\",language=\"python\"}", 1));
  EXPECT_EQ(metric("sbxd_running"), 0);
}

TEST_P(DaemonRun, ARunCanBeCancelledByItsId) {
  RawClient client = connect();
  ASSERT_TRUE(client.send(
      http_request("POST", "/v1/run?stream=1", python("import time; time.sleep(1000)").dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_running", 1));
  const std::string begun = read_until(client, "\"limits\"");
  const std::string id = begun.substr(begun.find("\"id\":\"") + 6, 16);
  EXPECT_EQ(ask("DELETE", "/v1/runs/ffffffffffffffff").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/runs/" + id).status, 204);
  (void)read_until(client, "\"status\":\"cancelled\"");
  EXPECT_EQ(ask("DELETE", "/v1/runs/" + id).status, 404) << "it is over";
}

// Whatever step of the start it meets: never an error of the sandbox.
TEST_P(DaemonRun, ACancellationDuringTheStartIsACancellation) {
  for (int i = 0; i < 30; ++i) {
    RawClient client = connect();
    ASSERT_TRUE(client.send(http_request("POST", "/v1/run", R"({"argv":["/bin/sleep","1000"]})")));
    const std::string head = read_until(client, "\r\n\r\n");
    const std::string id = head.substr(head.find("Sbx-Run-Id: ") + 12, 16);
    ASSERT_EQ(ask("DELETE", "/v1/runs/" + id).status, 204);
    (void)read_until(client, "\"status\":\"cancelled\"");
  }
  EXPECT_EQ(metric("sbxd_runs_total{status=\"cancelled\",language=\"none\"}"), 30);
}

TEST_P(DaemonRun, TheHeadOfABlockingCallComesBeforeTheEnd) {
  RawClient client = connect();
  ASSERT_TRUE(
      client.send(http_request("POST", "/v1/run", python("import time; time.sleep(1000)").dump())));
  const std::string head = read_until(client, "\r\n\r\n");
  const std::size_t at = head.find("Sbx-Run-Id: ");
  ASSERT_NE(at, std::string::npos) << head;
  EXPECT_EQ(ask("DELETE", "/v1/runs/" + head.substr(at + 12, 16)).status, 204);
}

TEST_P(DaemonRun, WrongRequestsAreProblemsWithACode) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "invalid_json"},
      {"{", "invalid_json"},
      {"[]", "wrong_type"},
      {"{}", "missing_field"},
      {R"({"argv":["ls"],"argv":["ls"]})", "duplicate_field"},
      {R"({"argv":["ls"],"shell":true})", "unknown_field"},
      {R"({"argv":["ls"],"limits":{"memory":"1000G"}})", "above_ceiling"},
      {R"({"argv":["ls"],"limits":{"network":"host"}})", "above_ceiling"},
      {R"({"argv":["ls"],"profile":"/etc/passwd"})", "unknown_profile"}};
  for (const auto& [body, code] : wrong) {
    const RawReply reply = ask("POST", "/v1/run", body);
    EXPECT_EQ(problem_of(reply)["code"], code) << body;
    EXPECT_GE(reply.status, 400) << body;
    EXPECT_LT(reply.status, 500) << body;
  }
  EXPECT_EQ(problem_of(ask("POST", "/v1/run?stream=2", R"({"argv":["ls"]})"))["code"],
            "invalid_value");
  EXPECT_EQ(problem_of(ask("POST", "/v1/run?live=1", R"({"argv":["ls"]})"))["code"],
            "unknown_parameter");
  EXPECT_EQ(problem_of(ask("GET", "/v1/run"))["code"], "method_not_allowed");
  EXPECT_EQ(problem_of(ask("GET", "/v1/nothing"))["code"], "not_found");
}

// What only the plan knows: still before the run, and still the client's mistake.
TEST_P(DaemonRun, InputsThatDoNotFitAreRefusedBeforeTheRun) {
  const Json request = {
      {"argv", {"/bin/true"}},
      {"files", {{{"name", "big"}, {"content_base64", encode_base64(std::string(8U << 20, 'x'))}}}},
      {"limits", {{"memory", "8M"}}}};
  const RawReply reply = ask("POST", "/v1/run", request.dump());
  EXPECT_EQ(reply.status, 422);
  EXPECT_THAT(problem_of(reply)["detail"].get<std::string>(), HasSubstr("8M"));
  EXPECT_EQ(problem_of(reply)["field"], "limits.memory");
  EXPECT_EQ(metric("sbxd_running"), 0);
}

TEST_P(DaemonRun, InfoTellsWhatThereIs) {
  const Json info = Json::parse(ask("GET", "/v1/info").body);
  std::vector<std::string> languages;
  for (const Json& language : info["languages"]) languages.push_back(language["name"]);
  EXPECT_THAT(languages, ElementsAre("bash", "javascript", "python"));
  EXPECT_EQ(info["profiles"][0]["name"], "default");
  EXPECT_EQ(info["limits"]["pids"], 64);
  EXPECT_EQ(info["ceilings"]["network"], "none");
  EXPECT_EQ(info["ceilings"]["memory"].get<double>(), metric("sbxd_memory_budget_bytes"));
  EXPECT_EQ(info["image"]["digest"].get<std::string>().size(), 64U);
  bool numpy = false;
  for (const Json& language : info["languages"])
    numpy = numpy || language["packages"].contains("numpy");
  EXPECT_TRUE(numpy);
  for (const Json& layer : info["layers"]) {
    if (layer["name"] == "seccomp") {
      EXPECT_EQ(layer["state"], "held");
    }
  }
}

TEST_P(DaemonRun, HealthMetricsAndTheDocumentAreServed) {
  EXPECT_EQ(ask("GET", "/healthz").body, R"({"status":"ok"})");
  EXPECT_EQ(Json::parse(ask("GET", "/v1/openapi.json").body)["openapi"], "3.1.0");
  (void)run({{"argv", {"/bin/true"}}});
  EXPECT_EQ(metric("sbxd_runs_total{status=\"ok\",language=\"none\"}"), 1);
  EXPECT_EQ(metric("sbxd_audit_lines_total"), 1);
  EXPECT_THAT(ask("GET", "/metrics").field("Content-Type"), HasSubstr("version=0.0.4"));
}

class SlowReader : public DaemonRun {
 protected:
  [[nodiscard]] std::string config() const override { return "stream_buffer = \"64K\"\n"; }
};
SBX_AS_BOTH_CALLERS(SlowReader);

// A client that reads nothing until the run is over loses live output, is told how much, and gets
// the exact result.
TEST_P(SlowReader, LosesCountedBytesAndNotTheResult) {
  RawClient client = connect();
  ASSERT_TRUE(client.send(http_request("POST", "/v1/run?stream=1",
                                       Json{{"language", "python"},
                                            {"code",
                                             "import sys\n"
                                             "for i in range(1000): print('%05d' % i * 200)"},
                                            {"limits", {{"stdout_bytes", "1M"}}}}
                                           .dump())));
  ASSERT_TRUE(wait_for_metric("sbxd_runs_total{status=\"ok\",language=\"python\"}", 1));
  const RawReply reply = client.reply();
  ASSERT_EQ(reply.status, 200);
  const std::vector<Json> events = events_of(reply.body);
  std::size_t received = 0;
  std::size_t lost = 0;
  for (const Json& event : events) {
    if (event["event"] == "stdout") received += event["data"].get<std::string>().size();
    if (event["event"] == "lost") lost += event["bytes"].get<std::size_t>();
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(received + lost, 1000U * 1001);
  EXPECT_EQ(events.back()["event"], "result");
  EXPECT_EQ(events.back()["result"]["stdout"].get<std::string>().size(), 1000U * 1001);
  EXPECT_GT(metric("sbxd_stream_lost_bytes_total"), 0);
}

}  // namespace
}  // namespace sbx::test
