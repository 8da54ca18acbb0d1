// What a program prints, and how it reaches the caller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

class Output : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Output);

constexpr std::size_t kKept = 64 * 1024;

TEST_P(Output, TenMegabytesKeepHeadAndTailAndCountTheRest) {
  const std::string flood =
      "import sys\n"
      "sys.stdout.write('HEAD' + 'x' * (10 * 1024 * 1024) + 'TAIL')\n";
  const std::uint64_t total = 10 * 1024 * 1024 + 8;
  const json result = run_json({"-c", flood});
  const std::string out = result["stdout"];
  EXPECT_EQ(out.size(), kKept);
  EXPECT_EQ(out.substr(0, 4), "HEAD");
  EXPECT_EQ(out.substr(out.size() - 4), "TAIL");
  EXPECT_EQ(result["stdout_dropped"].get<std::uint64_t>(), total - kKept);
  EXPECT_THAT(note_codes(result), Contains("output_cut"));
  EXPECT_THAT(result["limits_hit"].get<std::vector<std::string>>(), Contains("stdout_bytes"));

  const Finished finished = run({"-c", flood});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, out);
  EXPECT_THAT(finished.err, HasSubstr(std::to_string(total - kKept)));
}

TEST_P(Output, OutputOfExactlyTheLimitIsWhole) {
  const json result = run_json({"-c", "print('y' * 65535)"});
  EXPECT_EQ(result["stdout"].get<std::string>().size(), kKept);
  EXPECT_EQ(result["stdout_dropped"], 0);
  EXPECT_EQ(run({"-c", "print('y' * 65535)"}).out.size(), kKept);
}

TEST_P(Output, StreamsAreNeverMixed) {
  const Finished finished =
      run({"-c", "import sys\nfor i in range(200): print(i); print(-i, file=sys.stderr)"});
  std::string out;
  std::string err;
  for (int i = 0; i < 200; ++i) {
    out += std::to_string(i) + "\n";
    err += std::to_string(-i) + "\n";
  }
  EXPECT_EQ(finished.out, out);
  EXPECT_EQ(finished.err, err);
}

TEST_P(Output, InvalidUtf8IsFlaggedAndKept) {
  const std::string bytes = "import sys; sys.stdout.buffer.write(b'a\\xff\\xfe\\x00b')";
  const json result = run_json({"-c", bytes});
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["stdout"].get<std::string>(), std::string("a\xef\xbf\xbd\xef\xbf\xbd\0b", 9));
  EXPECT_EQ(result["stdout_base64"], "Yf/+AGI=");
  EXPECT_EQ(run({"-c", bytes}).out, std::string("a\xff\xfe\0b", 5));
  EXPECT_FALSE(run_json({"-c", "print('é')"}).contains("stdout_base64"));
}

TEST_P(Output, OutputIsLive) {
  Process process(command({"-c", "import time; print('now', flush=True); time.sleep(600)"}),
                  options());
  EXPECT_TRUE(process.wait_for_output("now\n", std::chrono::seconds(20)));
  process.signal(SIGTERM);
  EXPECT_EQ(process.finish().exit_code, 130);
}

TEST_P(Output, AReaderThatLeavesCancelsTheRun) {
  const std::string chatty = "while True: print('y' * 100, flush=True)";
  Process process(command({"-t", "60", "-c", chatty}), options());
  EXPECT_TRUE(process.wait_for_output("y\n", std::chrono::seconds(20)));
  process.close_output();
  const Finished finished = process.finish(std::chrono::seconds(20));
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_LT(finished.seconds, 20);
}

TEST_P(Output, AReaderThatDoesNotReadDoesNotStopTheClock) {
  Process process(command({"-t", "1", "-c", "while True: print('y' * 1000)"}), options());
  // Nothing is read before the run must be over; the pipe holds more than the head.
  const Finished finished = process.finish(std::chrono::seconds(20));
  EXPECT_EQ(finished.exit_code, 124);
}

TEST_P(Output, WhatCannotGoToAClosedStandardOutputIsAnError) {
  const auto closed = [&](const std::string& redirection, std::vector<std::string> words) {
    std::vector<std::string> shell{"/bin/sh", "-c", "exec \"$@\" " + redirection, "sh"};
    for (const std::string& word : command(std::move(words))) shell.push_back(word);
    return run_process(shell, options());
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--", "/bin/echo", "lost"},
        std::vector<std::string>{"--json", "--", "/bin/true"},
        std::vector<std::string>{"--help"}}) {
    const Finished finished = closed(">&-", words);
    EXPECT_EQ(finished.exit_code, 125) << words.front() << finished.err;
  }
  EXPECT_THAT(closed(">&-", {"--", "/bin/echo", "lost"}).err, HasSubstr("could not be written"));
  EXPECT_EQ(closed(">&-", {"--", "/bin/true"}).exit_code, 0) << "nothing was lost";
  EXPECT_EQ(closed("<&- 2>&-", {"--", "/bin/echo", "kept"}).out, "kept\n");
}

TEST_P(Output, InterruptAndTerminateCancel) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Process process(command({"-c", "import time; print('up', flush=True); time.sleep(600)"}),
                    options());
    ASSERT_TRUE(process.wait_for_output("up\n", std::chrono::seconds(20)));
    process.signal(signal);
    const Finished finished = process.finish(std::chrono::seconds(20));
    EXPECT_EQ(finished.exit_code, 130) << signal;
    EXPECT_EQ(finished.out, "up\n");
  }
}

TEST_P(Output, StandardInputReachesTheProgram) {
  const std::string echo = "import sys; sys.stdout.write(sys.stdin.read())";
  EXPECT_EQ(run({"-c", echo}, "line\nlast").out, "line\nlast");
  const std::string much(1024 * 1024, 'z');
  EXPECT_EQ(run({"-c", "import sys; print(len(sys.stdin.read()))"}, much).out, "1048576\n");
}

TEST_P(Output, StdinFileIsReadInsteadOfTheCallers) {
  const std::string file = directory().write("in.txt", "from a file");
  const std::string echo = "import sys; sys.stdout.write(sys.stdin.read())";
  EXPECT_EQ(run({"--stdin", file, "-c", echo}, "the caller's").out, "from a file");
}

TEST_P(Output, AProgramThatDoesNotReadItsInputEnds) {
  EXPECT_EQ(run({"-c", "print(1)"}, std::string(4 * 1024 * 1024, 'z')).out, "1\n");
}

}  // namespace
}  // namespace sbx::test
