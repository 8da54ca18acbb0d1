// Limits that sbx-run itself was started with: what of them reaches a program, what is told of it,
// and what is said where they do not let sbx-run do its work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class OwnLimits : public SandboxTest {
 protected:
  // sbx-run in a shell that has set its own limits before.
  Finished run_under(const std::string& ulimit, std::vector<std::string> words) const {
    std::vector<std::string> all{"/bin/bash", "-c", ulimit + R"(; exec "$0" "$@")"};
    for (std::string& word : command(std::move(words))) all.push_back(std::move(word));
    return run_process(all, options());
  }
  json json_under(const std::string& ulimit, std::vector<std::string> words) const {
    words.insert(words.begin(), "--json");
    const Finished finished = run_under(ulimit, std::move(words));
    json result = json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(result.is_object()) << finished.out << finished.err;
    return result.is_object() ? result : json::object();
  }
};
SBX_AS_BOTH_CALLERS(OwnLimits);

bool cores_are_piped() {
  std::ifstream file("/proc/sys/kernel/core_pattern");
  return file.get() == '|';
}

// One of the two is this host; tests/unit/plan/layers_test.cc has both.
TEST_P(OwnLimits, NoCoreAtAllIsEnoughWhereCoresGoToFilesAndNowhereElse) {
  const Finished finished =
      run_under("ulimit -c 0", {"-c", "import resource as r; print(r.getrlimit(r.RLIMIT_CORE))"});
  if (cores_are_piped()) {
    EXPECT_EQ(finished.exit_code, 125);
    EXPECT_THAT(finished.err, AllOf(HasSubstr("core"), HasSubstr("fix: "), HasSubstr("ulimit -c")));
  } else {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, "(0, 0)\n");
  }
}

TEST_P(OwnLimits, SoftOnesAreRaisedToTheHardOnes) {
  const Finished finished = run_under(
      "ulimit -St 1; ulimit -Sv 60000; ulimit -Ss 512; ulimit -Sn 32; ulimit -Sf 1",
      {"-c",
       "import resource as r\nprint([r.getrlimit(k)[0] for k in (r.RLIMIT_CPU, r.RLIMIT_AS)])\n"
       "print(r.getrlimit(r.RLIMIT_STACK)[0] >= 8 << 20)"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "[-1, -1]\nTrue\n");
}

TEST_P(OwnLimits, OfCpuTimeThatEndedTheRunAreNamed) {
  const json result = json_under("ulimit -t 1", {"-t", "20", "--cpus", "1", "-c", "while 1: pass"});
  const bool counted = !result["usage"].is_null();  // else nothing shows what ended it
  EXPECT_EQ(result["status"], counted ? "cpu_time" : "signal");
  EXPECT_THAT(result["limits_hit"], Not(Contains("cpu_seconds"))) << "which is the run's own";
  EXPECT_THAT(note_codes(result), Contains(counted ? "cpu_time" : "caller_limit"));
}

TEST_P(OwnLimits, OfMemoryAreToldInTheResultAndByExplain) {
  const json result = json_under("ulimit -v 100000", {"-c", "bytearray(150 << 20)"});
  EXPECT_EQ(result["status"], "exit");
  EXPECT_THAT(result.dump(), AllOf(HasSubstr("as 100000K"), HasSubstr("ulimit -v")));
  const Finished explained = run_under("ulimit -v 100000", {"explain", "-c", "1"});
  EXPECT_THAT(explained.out, HasSubstr("the caller's own hold too: as 100000K"));
}

TEST_P(OwnLimits, AreNotMentionedWhereTheyAreNotFelt) {
  const json result = json_under("ulimit -t 10000", {"-c", "print(1)"});
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["notes"], json::array());
}

// Not a crash, and not the name of something else.
TEST_P(OwnLimits, TooLowForSbxRunAreNamedWithWhatIsNeeded) {
  const struct {
    const char* ulimit;
    const char* says;
  } kCases[] = {{"ulimit -n 3", "open files"},     {"ulimit -n 12", "open files"},
                {"ulimit -n 40", "open files"},    {"ulimit -s 64", "stack"},
                {"ulimit -f 0", "size of a file"}, {"ulimit -f 1000", "size of a file"},
                {"ulimit -d 1000", "memory"},      {"ulimit -v 10000", "address space"}};
  for (const auto& [ulimit, says] : kCases) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"-c", "print(1)"},
                                                  {"doctor"},
                                                  {"selftest"},
                                                  {"explain", "-c", "1"}}) {
      const Finished finished = run_under(ulimit, words);
      EXPECT_EQ(finished.exit_code, 125) << ulimit << " " << words[0] << finished.err;
      EXPECT_THAT(finished.err, AllOf(HasSubstr(says), HasSubstr("fix: "))) << ulimit;
    }
  }
}

TEST_P(OwnLimits, TooLowForTheSelftestAreNamedBeforeItBegins) {
  for (const char* const ulimit : {"ulimit -n 100", "ulimit -d 8192", "ulimit -f 8192"}) {
    const Finished finished = run_under(ulimit, {"selftest"});
    EXPECT_EQ(finished.exit_code, 125) << ulimit;
    EXPECT_EQ(finished.out, "") << ulimit;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("are needed"), HasSubstr("fix: ")));
  }
}

TEST_P(OwnLimits, OfMemoryThatARunNeedsMoreThanAreNoCrash) {
  const std::string input = directory().write("data", std::string(4 << 20, 'x'));
  const Finished finished = run_under("ulimit -d 6000", {"--input", input, "-c", "1"});
  EXPECT_EQ(finished.exit_code, 125);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("no memory left"), HasSubstr("ulimit -d")));
}

// What nobody asked for gives way; what the caller asks for is refused.
TEST_P(OwnLimits, BelowAProfilesLimitsLowerThem) {
  const json result =
      json_under("ulimit -n 120; ulimit -f 8192", {"-c",
                                                   "import resource as r; print(r.getrlimit(7), "
                                                   "r.getrlimit(1))"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "(120, 120) (8388608, 8388608)\n");
  EXPECT_EQ(result["limits"]["nofile"], 120);
  EXPECT_EQ(result["limits"]["fsize"], 8388608);
}

TEST_P(OwnLimits, ThatAreJustEnoughAreEnough) {
  const std::string input = directory().write("data", "x");
  const Finished finished =
      run_under("ulimit -n 96; ulimit -s 256; ulimit -f 4096",
                {"--input", input, "--output-dir", directory().path(), "-c",
                 "open('/output/a', 'w').write(open('/input/data').read()); print(1)"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "1\n");
}

}  // namespace
}  // namespace sbx::test
