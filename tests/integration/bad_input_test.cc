// What the caller or the host got wrong: a clear error, the contract's exit code, nothing run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class BadInput : public SandboxTest {
 protected:
  // Exit 2, nothing on stdout (with --json too), and on stderr what `says` wants.
  void expect_usage_error(const std::vector<std::string>& words, const std::string& says) {
    for (const bool as_json : {false, true}) {
      std::vector<std::string> all = words;
      if (as_json) all.insert(all.begin(), "--json");
      const Finished finished = run(all);
      EXPECT_EQ(finished.exit_code, 2) << says << ": " << finished.err;
      EXPECT_EQ(finished.out, "") << says;
      EXPECT_THAT(finished.err, AllOf(HasSubstr(says), HasSubstr("sbx-run: ")));
    }
  }
};
SBX_AS_BOTH_CALLERS(BadInput);

TEST_P(BadInput, NoProgramAtAll) {
  expect_usage_error({}, "no program");
}

TEST_P(BadInput, AMissingFile) {
  expect_usage_error({"/no/such.py"}, "/no/such.py");
}

TEST_P(BadInput, ADirectory) {
  expect_usage_error({"-l", "python", "/tmp"}, "directory");
}

TEST_P(BadInput, AnUnreadableFile) {
  if (!is_user() && ::geteuid() == 0) {
    // What even root cannot read: nothing is mapped at the start of our memory.
    return expect_usage_error({"-l", "python", "/proc/self/mem"}, "/proc/self/mem");
  }
  const std::string path = directory().write("a.py", "print(1)");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  expect_usage_error({path}, path);
}

TEST_P(BadInput, AnUnknownLanguageListsThoseThatAre) {
  expect_usage_error({"-l", "cobol", "-c", "x"}, "cobol");
  expect_usage_error({"-l", "cobol", "-c", "x"}, "python");
  expect_usage_error({directory().write("a.xyz", "x")}, "-l");
}

TEST_P(BadInput, BadNumbersAndSizes) {
  expect_usage_error({"-t", "soon", "-c", "pass"}, "--timeout");
  expect_usage_error({"-t", "-1", "-c", "pass"}, "--timeout");
  expect_usage_error({"-t", "0", "-c", "pass"}, "--timeout");
  expect_usage_error({"-t", "nan", "-c", "pass"}, "--timeout");
  expect_usage_error({"--memory", "12Q", "-c", "pass"}, "memory");
  expect_usage_error({"--memory", "99999999999999999999G", "-c", "pass"}, "memory");
  expect_usage_error({"--cpus", "0", "-c", "pass"}, "cpus");
  expect_usage_error({"--pids", "1.5", "-c", "pass"}, "pids");
  expect_usage_error({"--net", "some", "-c", "pass"}, "--net");
  expect_usage_error({"--env", "novalue", "-c", "pass"}, "K=V");
  expect_usage_error({"--allow-missing", "wall", "-c", "pass"}, "wall");
  expect_usage_error({"-t", "5", "--timeout", "9", "-c", "pass"}, "--timeout is given twice");
  for (const char* layer : {"mount_namespace", "pid_namespace", "rootfs"}) {
    expect_usage_error({"--allow-missing", layer, "-c", "pass"}, "nothing would be isolated");
  }
}

TEST_P(BadInput, ALimitAboveTheHosts) {
  expect_usage_error({"--memory", "8000G", "-c", "pass"}, "memory");
  expect_usage_error({"--cpus", "1000", "-c", "pass"}, "cpus");
}

TEST_P(BadInput, ALimitAboveTheConfigsIsRefusedAndADefaultIsLowered) {
  std::filesystem::create_directories(directory().path() + "/config/sbx");
  (void)directory().write("config/sbx/runtime.toml", "max_memory = \"64M\"\n");
  ProcessOptions configured = options();
  configured.environment.push_back("XDG_CONFIG_HOME=" + directory().path() + "/config");
  const Finished asked = run_process(command({"--memory", "128M", "-c", "pass"}), configured);
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, HasSubstr("fix: ask for at most 64M"));
  const Finished lowered = run_process(command({"-c", "print(1)"}), configured);
  EXPECT_EQ(lowered.exit_code, 0);
  EXPECT_EQ(lowered.out, "1\n");
  EXPECT_EQ(lowered.err,
            "sbx-run: memory was lowered from 256M to 64M, the ceiling of this host or of "
            "runtime.toml\n");
  const Finished explained = run_process(command({"explain", "-c", "1"}), configured);
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
}

TEST_P(BadInput, UnknownOptions) {
  expect_usage_error({"--bogus", "-c", "pass"}, "--bogus");
  expect_usage_error({"--"}, "command");
}

TEST_P(BadInput, AnUnknownKeyInAProfileIsFoundByFileLineAndKey) {
  const std::string profile = directory().write(
      "p.toml", "name = \"p\"\ndescription = \"x\"\n\n[limits]\nmemroy = \"1G\"\n");
  expect_usage_error({"--profile", profile, "-c", "pass"}, profile + ":5");
  expect_usage_error({"--profile", profile, "-c", "pass"}, "memroy");
}

TEST_P(BadInput, AnUnknownProfileListsThoseThatAre) {
  expect_usage_error({"--profile", "none-such", "-c", "pass"}, "default");
}

TEST_P(BadInput, InputsThatAreNotThereOrNotFiles) {
  expect_usage_error({"--input", "/no/such", "-c", "pass"}, "/no/such");
  expect_usage_error({"--input", "/tmp", "-c", "pass"}, "not a regular file");
  const std::string file = directory().write("a", "1");
  expect_usage_error({"--input", file, "--input", file, "-c", "pass"}, "two inputs");
  expect_usage_error({"--input", file + ":..", "-c", "pass"}, "name");
  expect_usage_error({"--input", file + ":a/b", "-c", "pass"}, "'a/b' is no name");
}

TEST_P(BadInput, InputsThatLeaveNoRoom) {
  const std::string file = directory().write("big", std::string(20 * 1024 * 1024, 'x'));
  expect_usage_error({"--memory", "16M", "--input", file, "-c", "pass"}, "16M");
}

TEST_P(BadInput, AnOutputDirectoryThatCannotBeWritten) {
  expect_usage_error({"--output-dir", "/no/such/dir", "-c", "pass"}, "/no/such/dir");
  const std::string file = directory().write("file", "1");
  expect_usage_error({"--output-dir", file, "-c", "pass"}, file);
  expect_usage_error({"--output-dir", "/proc/self", "-c", "pass"}, "/proc/self");
}

TEST_P(BadInput, CodeOverSixteenMegabytes) {
  const std::string most(16 * 1024 * 1024, '#');
  expect_usage_error({directory().write("big.py", most + "#")}, "16M");
  const Finished at_the_limit =
      run({"--memory", "512M", "-t", "60", directory().write("most.py", most)});
  EXPECT_EQ(at_the_limit.exit_code, 0) << at_the_limit.err;
}

TEST_P(BadInput, AMissingImageIsTheHostsAndNamesTheCommand) {
  const Finished finished = run({"--rootfs", "none-such", "-c", "pass"});
  EXPECT_EQ(finished.exit_code, 125);
  EXPECT_THAT(finished.err, HasSubstr("scripts/image"));
  const Finished as_json = run({"--json", "--rootfs", "none-such", "-c", "pass"});
  EXPECT_EQ(as_json.exit_code, 125);
  const json result = json::parse(as_json.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << as_json.out;
  EXPECT_EQ(result["status"], "sandbox_error");
  EXPECT_EQ(result["ok"], false);
  EXPECT_THAT(result["error"]["fix"].get<std::string>(), HasSubstr("scripts/image"));
}

TEST_P(BadInput, ACommandThatIsNotInTheRootfsIsReported) {
  const Finished finished = run({"--", "no-such-program"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace sbx::test
