// How runs end: each verdict, its exit code, its evidence and its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "runtime/policy/limits.h"
#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Endings : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Endings);

TEST_P(Endings, HelloIsTheProgramsOwnOutputAndNothingElse) {
  const Finished finished = run({"-c", "print('hello')"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "hello\n");
  EXPECT_EQ(finished.err, "");
}

TEST_P(Endings, ASyntaxErrorIsTheProgramsOwnFailure) {
  const json result = run_json({"-c", "print('"});
  EXPECT_EQ(result["status"], "exit");
  EXPECT_EQ(result["exit_code"], 1);
  EXPECT_EQ(result["ok"], false);
  EXPECT_THAT(result["stderr"].get<std::string>(), HasSubstr("SyntaxError"));
}

TEST_P(Endings, AnExitCodeIsPassedOn) {
  EXPECT_EQ(run({"-c", "raise SystemExit(3)"}).exit_code, 3);
  EXPECT_EQ(run_json({"-c", "raise SystemExit(3)"})["exit_code"], 3);
}

TEST_P(Endings, ACrashIsASignalOfTheProgramsOwn) {
  const std::string crash = "import ctypes; ctypes.string_at(0)";
  const Finished finished = run({"-c", crash});
  EXPECT_EQ(finished.exit_code, 128 + 11);
  EXPECT_THAT(finished.err, HasSubstr("SIGSEGV"));
  const json result = run_json({"-c", crash});
  EXPECT_EQ(result["status"], "signal");
  EXPECT_EQ(result["signal"], 11);
  EXPECT_EQ(result["exit_code"], 139);
}

TEST_P(Endings, AnEndlessLoopEndsOnTimeAndKeepsItsOutput) {
  const std::string loop = "print('begun', flush=True)\nwhile True: pass";
  const Finished finished = run({"-t", "1", "-c", loop});
  EXPECT_EQ(finished.exit_code, 124);
  EXPECT_EQ(finished.out, "begun\n");
  EXPECT_THAT(finished.err, HasSubstr("sbx-run: "));
  const json result = run_json({"-t", "1", "-c", loop});
  EXPECT_EQ(result["status"], "timeout");
  EXPECT_EQ(result["timed_out"], true);
  EXPECT_EQ(result["exit_code"], -1);
  EXPECT_TRUE(result["signal"].is_null());
  EXPECT_GE(result["duration_seconds"].get<double>(), 1.0);
  EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);
  EXPECT_THAT(note_codes(result), Contains("wall"));
  EXPECT_THAT(result["limits_hit"].get<std::vector<std::string>>(), Contains("wall_seconds"));
}

TEST_P(Endings, CpuTimeIsALimitOfItsOwn) {
  const json result =
      run_json({"--cpu-time", "0.3", "--cpus", "1", "-t", "20", "-c", "while True: pass"});
  EXPECT_EQ(result["status"], "cpu_time");
  EXPECT_EQ(result["timed_out"], false);
  EXPECT_GE(result["usage"]["cpu_seconds"].get<double>(), 0.25);
}

// Whoever watches the run may be late, here by being stopped: what was used counts.
TEST_P(Endings, AProgramThatUsedTooMuchCpuTimeIsToldSoThoughItHasEnded) {
  const std::string code = "import time\nwhile time.process_time() < 0.6: pass";
  std::vector<std::string> words = {
      "bash", "-c",
      "\"$@\" & run=$!; sleep 0.2; kill -STOP $run; sleep 2; kill -CONT $run; wait $run", "late"};
  for (const std::string& word :
       command({"--json", "--cpu-time", "0.2", "--cpus", "1", "-t", "60", "-c", code})) {
    words.push_back(word);
  }
  const Finished finished = run_process(words);
  EXPECT_EQ(finished.exit_code, 124) << finished.err;
  EXPECT_EQ(json::parse(finished.out, nullptr, false)["status"], "cpu_time") << finished.out;
}

// Nor does the limit on time need whoever watches: sbx-init has it too.
TEST_P(Endings, AProgramWhoseSupervisorIsStoppedEndsAtItsTimeAllTheSame) {
  const std::string code =
      "import time\nwhile True: print(time.time(), flush=True); time.sleep(0.1)";
  std::vector<std::string> words = {
      "bash", "-c",
      "out=$(mktemp); \"$@\" > $out & run=$!; until [ -s $out ]; do sleep 0.05; done; "
      "kill -STOP $run; sleep 12; kill -CONT $run; wait $run; code=$?; cat $out; rm $out; exit "
      "$code",
      "late"};
  for (const std::string& word : command({"-t", "3", "-c", code})) words.push_back(word);
  const Finished finished = run_process(words);
  EXPECT_EQ(finished.exit_code, 124) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("limit"));
  std::istringstream times(finished.out);
  double first = 0;
  double last = 0;
  times >> first;
  while (times >> last) {
  }
  EXPECT_GT(last - first, 3.0) << "ended by init, not by who watches";
  EXPECT_LT(last - first, 9.0) << "seconds that a program of three ran";
}

TEST_P(Endings, AnAllocationOverTheLimitIsAnOomKillWithItsPeak) {
  const std::string hog = "x = bytearray(1 << 30); print(len(x))";
  const Finished finished = run({"--memory", "256M", "-c", hog});
  EXPECT_EQ(finished.exit_code, 137);
  EXPECT_THAT(finished.err, HasSubstr("256M"));
  const json result = run_json({"-c", hog});
  EXPECT_EQ(result["status"], "oom");
  EXPECT_EQ(result["exit_code"], 137);
  EXPECT_EQ(result["signal"], 9);
  EXPECT_GE(result["usage"]["oom_kills"].get<std::uint64_t>(), 1U);
  EXPECT_GE(result["usage"]["memory_peak"].get<std::uint64_t>(), 250 * policy::kMiB);
  EXPECT_LE(result["usage"]["memory_peak"].get<std::uint64_t>(), 257 * policy::kMiB);
  EXPECT_THAT(note_codes(result), Contains("memory"));
  EXPECT_THAT(result["limits_hit"].get<std::vector<std::string>>(), Contains("memory"));
}

TEST_P(Endings, AForkBombIsStoppedByTheCapAndSaid) {
  const std::string bomb =
      "import os, time\n"
      "n = 0\n"
      "try:\n"
      "    while True:\n"
      "        if os.fork() == 0:\n"
      "            time.sleep(60)\n"
      "            os._exit(0)\n"
      "        n += 1\n"
      "except OSError as e:\n"
      "    print(n, e.errno)\n";
  const json result = run_json({"--cpus", "1", "-c", bomb});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "63 11\n");
  EXPECT_GE(result["usage"]["pids_refused"].get<std::uint64_t>(), 1U);
  EXPECT_THAT(note_codes(result), Contains("pids"));
  EXPECT_THAT(note_codes(result), Contains("background_killed"));
  EXPECT_THAT(result["limits_hit"].get<std::vector<std::string>>(), Contains("pids"));
}

TEST_P(Endings, AnEndlessForkBombEndsOnTime) {
  const json result =
      run_json({"-t", "2", "-l", "bash", "-c", ":(){ :|:& };: ; while :; do :; done"});
  EXPECT_THAT(result["status"].get<std::string>(), AnyOf("timeout", "oom"));
  EXPECT_LT(result["duration_seconds"].get<double>(), 10.0);
}

TEST_P(Endings, ASocketToAnywhereFailsAndIsNoted) {
  const std::string call =
      "import socket\n"
      "try: socket.create_connection(('93.184.216.34', 80), 2)\n"
      "except OSError as e: print(e.errno)\n";
  const json result = run_json({"-c", call});
  EXPECT_EQ(result["stdout"], "101\n");  // ENETUNREACH
  EXPECT_THAT(note_codes(result), Contains("network_attempt"));
}

TEST_P(Endings, WritingToEtcIsReadOnly) {
  const std::string write =
      "try: open('/etc/x', 'w')\n"
      "except OSError as e: print(e.errno)\n";
  EXPECT_EQ(run({"-c", write}).out, "30\n");  // EROFS
}

// Its nodes are the host's own: their times would tell other runs something, and the host.
TEST_P(Endings, ADeviceIsWrittenToButKeepsItsTimes) {
  const std::string touch =
      "import os\n"
      "open('/tmp/own', 'w').close(); os.utime('/tmp/own')\n"  // the control
      "for name in 'null', 'zero', 'full', 'random', 'urandom':\n"
      "    try: os.utime('/dev/' + name)\n"
      "    except OSError as e: print(name, e.errno)\n"
      "print(os.write(os.open('/dev/null', os.O_WRONLY | os.O_TRUNC), b'x'))\n";
  EXPECT_EQ(run({"-c", touch}).out,
            "null 30\nzero 30\nfull 30\nrandom 30\nurandom 30\n1\n");  // EROFS
}

TEST_P(Endings, AHostileCallEndsTheRunAndIsNamed) {
  const std::string attack = "import ctypes; ctypes.CDLL(None).unshare(0x10000000); print('after')";
  const Finished finished = run({"-c", attack});
  EXPECT_EQ(finished.exit_code, 159);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("unshare"));
  const json result = run_json({"-c", attack});
  EXPECT_EQ(result["status"], "security");
  ASSERT_FALSE(result["denials"].empty());
  EXPECT_EQ(result["denials"][0]["syscall"], "unshare");
  EXPECT_EQ(result["denials"][0]["tier"], "hostile");
}

TEST_P(Endings, AHeapOfNodeThatGrowsToItsEndIsExplained) {
  const json result =
      run_json({"-l", "js", "-c", "const a = []; for (;;) a.push(new Array(1000).fill(a.length))"});
  EXPECT_EQ(result["status"], "signal");
  EXPECT_EQ(result["signal"], SIGABRT);
  EXPECT_THAT(note_codes(result), Contains("memory"));
  EXPECT_EQ(result["limits_hit"], json::array());
}

TEST_P(Endings, ADeniedCallIsCountedByName) {
  const std::string attempt =
      "import ctypes\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "libc.chroot(b'/'); print(ctypes.get_errno())\n";
  const json result = run_json({"-c", attempt});
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["stdout"], "1\n");
  ASSERT_FALSE(result["denials"].empty());
  EXPECT_EQ(result["denials"][0]["syscall"], "chroot");
  EXPECT_THAT(run({"--learn", "-c", attempt}).err, HasSubstr("# chroot is not offered, because"));
}

TEST_P(Endings, NumbersThatNobodyKnowsDoNotCrowdOutTheCallsThatHaveANameInTheResult) {
  const std::string attempt =
      "import ctypes\n"
      "libc = ctypes.CDLL(None)\n"
      "for number in range(600, 900): libc.syscall(number)\n"
      "libc.chroot(b'/')\n";
  const json result = run_json({"-c", attempt});
  EXPECT_EQ(result["status"], "ok");
  std::vector<std::string> names;
  for (const json& denial : result["denials"]) names.push_back(denial["syscall"]);
  EXPECT_THAT(names, AllOf(Contains("chroot"), Contains("syscall_600")));
  EXPECT_LE(names.size(), 64U);
}

TEST_P(Endings, AModuleThatIsNotThereIsNotedWithWhatIs) {
  const json result = run_json({"-c", "import torch"});
  EXPECT_EQ(result["status"], "exit");
  EXPECT_THAT(note_codes(result), Contains("missing_module"));
  for (const json& note : result["notes"]) {
    if (note["code"] != "missing_module") continue;
    EXPECT_EQ(note["source"], "program");
    EXPECT_THAT(note["text"].get<std::string>(), HasSubstr("numpy"));
  }
}

TEST_P(Endings, ADaemonDiesWithTheRun) {
  const std::string daemon =
      "import os, time\n"
      "if os.fork() == 0:\n"
      "    os.setsid()\n"
      "    if os.fork() == 0: time.sleep(600)\n"
      "    os._exit(0)\n"
      "os.wait(); print('gone')\n";
  const json result = run_json({"-c", daemon});
  EXPECT_EQ(result["status"], "ok");
  EXPECT_THAT(note_codes(result), Contains("background_killed"));
}

TEST_P(Endings, EveryRequiredLayerIsHeldAndListed) {
  const json result = run_json({"-c", "pass"});
  for (const json& layer : result["layers"]) {
    const std::string name = layer["name"];
    if (name == "uid_separation" || name == "landlock" || name == "time_namespace" ||
        name == "cpuset") {
      continue;
    }
    EXPECT_EQ(layer["state"], "held") << layer.dump();
  }
  EXPECT_GE(result["layers"].size(), 14U);
}

TEST_P(Endings, NetHostIsLoud) {
  const Finished finished = run({"--net", "host", "-c", "print(1)"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("net_namespace"));
}

}  // namespace
}  // namespace sbx::test
