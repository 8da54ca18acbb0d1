#include "runtime/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sbx::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

Arguments parsed(const std::vector<std::string>& words) {
  Result<Arguments> arguments = parse_arguments(words);
  EXPECT_TRUE(arguments.has_value()) << (arguments ? "" : to_string(arguments.error()));
  return arguments ? *arguments : Arguments{};
}

std::string refused(const std::vector<std::string>& words) {
  const Result<Arguments> arguments = parse_arguments(words);
  EXPECT_FALSE(arguments.has_value());
  if (arguments) return {};
  EXPECT_EQ(arguments.error().code, ErrorCode::kInvalid);
  return arguments.error().detail;
}

TEST(Arguments, WordsAfterFileGoToTheProgramVerbatim) {
  const Arguments arguments = parsed({"-t", "5", "a.py", "--json", "-t", "9", "--", "-x", ""});
  EXPECT_EQ(arguments.source, Source::kFile);
  EXPECT_EQ(arguments.program, "a.py");
  EXPECT_THAT(arguments.args, ElementsAre("--json", "-t", "9", "--", "-x", ""));
  EXPECT_THAT(arguments.limits, ElementsAre(Pair("wall_seconds", "5")));
  EXPECT_FALSE(arguments.json);
}

TEST(Arguments, WordsAfterTheFirstMarkAreTheCommandVerbatim) {
  const Arguments arguments = parsed({"--json", "--", "ls", "--", "--json", "-la"});
  EXPECT_EQ(arguments.source, Source::kCommand);
  EXPECT_THAT(arguments.args, ElementsAre("ls", "--", "--json", "-la"));
  EXPECT_TRUE(arguments.json);
}

TEST(Arguments, ASecondMarkBelongsToTheCommand) {
  EXPECT_THAT(parsed({"--", "--", "x"}).args, ElementsAre("--", "x"));
}

TEST(Arguments, ACommandMayLookLikeAnOption) {
  EXPECT_THAT(parsed({"--", "--json"}).args, ElementsAre("--json"));
}

TEST(Arguments, CodeIsTakenAsItIs) {
  for (const std::string code : {"", "-1", "--json", "[1,2]", "{}", "\"q\"", "%%", "a\nb"}) {
    const Arguments arguments = parsed({"-c", code});
    EXPECT_EQ(arguments.source, Source::kCode);
    EXPECT_EQ(arguments.program, code);
  }
}

// Whatever a stranger gives a wrapper like `sbx-run -c "$CODE" "$@"`.
TEST(Arguments, NothingAfterTheProgramIsAnOption) {
  const std::vector<std::vector<std::string>> forms = {
      {"-c", "x"},
      {"-cx"},
      {"-c", "--json"},
      {"-c", "doctor"},
      {"-c", "--"},
      {"-c", ""},
      {"-l", "bash", "-c", "x"},
      {"-lbash", "-t5", "-cx"},
      {"--env", "A=", "--env=", "-c", "x"},
      {"a.py"},
      {"-"},
      {"--input=", "a.py"},
      {"--output-dir=", "-"},
      {"--", "ls"},
      {"--stdin=", "--", "--json"},
  };
  const std::vector<std::vector<std::string>> strangers = {
      {"--net=host"},
      {"--net", "host"},
      {"--output-dir", "D", "--rootfs", "host", "--input=/etc/shadow"},
      {"--json", "x"},
      {"--foo"},
      {"-x"},
      {"-t", "9"},
      {"-c", "y"},
      {"-cy"},
      {"-hc", "y"},
      {"--", "--net=host"},
      {"--"},
      {"-"},
      {""},
      {"--help"},
      {"-h"},
      {"--version"},
      {"--print-config"},
      {"doctor", "--json"},
      {"explain"},
      {"selftest"},
      {"--profile="},
      {"--allow-missing", "cgroup", "--learn", "--env", "A=1", "--stdin", "in", "-l", "js"},
  };
  for (const auto& form : forms) {
    for (const bool explained : {false, true}) {
      std::vector<std::string> before = form;
      if (explained) before.insert(before.begin(), "explain");
      const Arguments alone = parsed(before);
      ASSERT_NE(alone.source, Source::kNone);
      for (const auto& stranger : strangers) {
        SCOPED_TRACE(::testing::PrintToString(before) + " " + ::testing::PrintToString(stranger));
        std::vector<std::string> words = before;
        words.insert(words.end(), stranger.begin(), stranger.end());
        Arguments arguments = parsed(words);
        std::vector<std::string> expected = stranger;
        if (alone.source == Source::kCommand) expected.insert(expected.begin(), form.back());
        EXPECT_EQ(arguments.args, expected);
        arguments.args = alone.args;
        EXPECT_TRUE(arguments == alone);
      }
    }
  }
}

TEST(Arguments, OptionsComeBeforeCode) {
  const Arguments arguments = parsed({"--json", "-l", "sh", "-c", "x", "--learn"});
  EXPECT_TRUE(arguments.json);
  EXPECT_FALSE(arguments.learn);
  EXPECT_EQ(arguments.language, "sh");
  EXPECT_EQ(arguments.program, "x");
  EXPECT_THAT(arguments.args, ElementsAre("--learn"));
}

TEST(Arguments, AMarkAfterCodeIsAnArgumentAsItIsAfterFile) {
  for (const std::vector<std::string>& program : {std::vector<std::string>{"-c", "x"}, {"a.py"}}) {
    std::vector<std::string> words = program;
    words.insert(words.end(), {"--", "-l", "--"});
    EXPECT_THAT(parsed(words).args, ElementsAre("--", "-l", "--"));
  }
}

TEST(Arguments, AnEmptyValueTakesNoOtherWord) {
  const Arguments arguments = parsed({"--input=", "--profile=", "--memory=", "a.py", "--net=host"});
  EXPECT_EQ(arguments.program, "a.py");
  EXPECT_THAT(arguments.inputs, ElementsAre(""));
  EXPECT_EQ(arguments.profile, "");
  EXPECT_THAT(arguments.limits, ElementsAre(Pair("memory", "")));
  EXPECT_THAT(arguments.args, ElementsAre("--net=host"));
}

TEST(Arguments, LettersMayStandWithTheirValuesAndTogether) {
  const Arguments arguments = parsed({"-t5", "-ljs", "-c1+1", "-t9"});
  EXPECT_THAT(arguments.limits, ElementsAre(Pair("wall_seconds", "5")));
  EXPECT_EQ(arguments.language, "js");
  EXPECT_EQ(arguments.program, "1+1");
  EXPECT_THAT(arguments.args, ElementsAre("-t9"));
  EXPECT_EQ(parsed({"-hc", "x", "y"}).verb, Verb::kHelp);
  EXPECT_THAT(refused({"-zh", "a.py"}), HasSubstr("-zh"));
  EXPECT_THAT(refused({"--json=no", "a.py"}), HasSubstr("takes no value"));
}

TEST(Arguments, ADashIsStandardInput) {
  const Arguments arguments = parsed({"-l", "bash", "-", "a", "-b"});
  EXPECT_EQ(arguments.source, Source::kStandardInput);
  EXPECT_EQ(arguments.language, "bash");
  EXPECT_THAT(arguments.args, ElementsAre("a", "-b"));
}

TEST(Arguments, NothingNamedIsNoSource) {
  EXPECT_EQ(parsed({}).source, Source::kNone);
  EXPECT_EQ(parsed({"--json"}).source, Source::kNone);
}

TEST(Arguments, EveryOptionOfTheContractHasItsPlace) {
  const Arguments arguments = parsed({"-l",           "js",
                                      "--timeout",    "1.5",
                                      "--cpu-time",   "2",
                                      "--memory",     "1G",
                                      "--cpus",       "2",
                                      "--pids",       "9",
                                      "--input",      "a:b",
                                      "--input",      "[x,y]",
                                      "--output-dir", "out",
                                      "--env",        "K=V W",
                                      "--env",        "E=",
                                      "--stdin",      "in",
                                      "--profile",    "p.toml",
                                      "--rootfs",     "host",
                                      "--net",        "host",
                                      "--learn",      "--allow-missing",
                                      "cgroup",       "--allow-missing",
                                      "proc",         "--json",
                                      "f.js"});
  EXPECT_EQ(arguments.language, "js");
  EXPECT_THAT(arguments.limits, ElementsAre(Pair("wall_seconds", "1.5"), Pair("cpu_seconds", "2"),
                                            Pair("memory", "1G"), Pair("cpus", "2"),
                                            Pair("pids", "9"), Pair("network", "host")));
  EXPECT_THAT(arguments.inputs, ElementsAre("a:b", "[x,y]"));
  EXPECT_THAT(arguments.env, ElementsAre("K=V W", "E="));
  EXPECT_EQ(arguments.output_dir, "out");
  EXPECT_EQ(arguments.stdin_file, "in");
  EXPECT_EQ(arguments.profile, "p.toml");
  EXPECT_EQ(arguments.rootfs, "host");
  EXPECT_THAT(arguments.allow_missing, ElementsAre("cgroup", "proc"));
  EXPECT_TRUE(arguments.json);
  EXPECT_TRUE(arguments.learn);
}

TEST(Arguments, AVerbIsOneOnlyWhereFileCouldStand) {
  EXPECT_EQ(parsed({"doctor", "--json"}).verb, Verb::kDoctor);
  EXPECT_TRUE(parsed({"doctor", "--json"}).json);
  EXPECT_EQ(parsed({"--json", "selftest"}).verb, Verb::kSelftest);
  EXPECT_EQ(parsed({"./doctor"}).program, "./doctor");
  EXPECT_EQ(parsed({"a.py", "doctor"}).verb, Verb::kRun);
  EXPECT_THAT(parsed({"-c", "x", "doctor"}).args, ElementsAre("doctor"));
  EXPECT_THAT(parsed({"--", "doctor"}).args, ElementsAre("doctor"));
}

TEST(Arguments, ExplainTakesWhatARunTakes) {
  const Arguments arguments = parsed({"explain", "-t", "3", "a.py", "-t", "4"});
  EXPECT_EQ(arguments.verb, Verb::kExplain);
  EXPECT_EQ(arguments.program, "a.py");
  EXPECT_THAT(arguments.limits, ElementsAre(Pair("wall_seconds", "3")));
  EXPECT_THAT(arguments.args, ElementsAre("-t", "4"));
}

TEST(Arguments, DoctorAndSelftestTakeNoProgram) {
  EXPECT_THAT(refused({"doctor", "x"}), HasSubstr("takes no program"));
  EXPECT_THAT(refused({"selftest", "--", "x"}), HasSubstr("takes no program"));
}

TEST(Arguments, UnknownOptionsAreNamed) {
  EXPECT_THAT(refused({"--bogus", "x"}), HasSubstr("--bogus"));
  EXPECT_THAT(refused({"-x"}), HasSubstr("-x"));
  EXPECT_THAT(refused({"--jso"}), HasSubstr("--jso"));
}

TEST(Arguments, AnOptionOfOneValueIsGivenOnce) {
  EXPECT_EQ(refused({"-t", "5", "--timeout", "9", "a.py"}), "--timeout is given twice");
  EXPECT_EQ(refused({"--memory", "1M", "--memory=1M", "a.py"}), "--memory is given twice");
  EXPECT_EQ(refused({"--pids", "9", "explain", "--pids", "8"}), "--pids is given twice");
  for (const char* option : {"-l", "--output-dir", "--stdin", "--profile", "--rootfs", "--net"}) {
    EXPECT_THAT(refused({option, "a", option, "b", "a.py"}), HasSubstr(" is given twice"));
  }
  EXPECT_THAT(parsed({"--input", "a", "--input", "b", "a.py"}).inputs, ElementsAre("a", "b"));
  EXPECT_THAT(parsed({"--env", "A=", "--env", "A=1", "a.py"}).env, ElementsAre("A=", "A=1"));
  EXPECT_THAT(parsed({"--allow-missing", "a", "--allow-missing", "b", "a.py"}).allow_missing,
              ElementsAre("a", "b"));
}

TEST(Arguments, AMissingValueIsNamed) {
  EXPECT_EQ(refused({"--memory"}), "--memory needs a value");
  EXPECT_EQ(refused({"-c"}), "-c needs a value");
  EXPECT_EQ(refused({"-l", "bash", "-t"}), "--timeout needs a value");
  EXPECT_EQ(refused({"--language=", "-c", "1"}), "--language needs a name");
  EXPECT_EQ(refused({"-l", "", "a.py"}), "--language needs a name");
}

TEST(Arguments, AVerbTakesItsOwnOptionsAlone) {
  EXPECT_EQ(parsed({"--json", "doctor", "--rootfs", "host"}).verb, Verb::kDoctor);
  EXPECT_EQ(parsed({"selftest", "--profile", "judge", "--allow-missing", "cgroup"}).verb,
            Verb::kSelftest);
  EXPECT_EQ(refused({"doctor", "-t", "5"}), "doctor has no --timeout");
  EXPECT_EQ(refused({"--memory", "5M", "doctor"}), "doctor has no --memory");
  EXPECT_EQ(refused({"doctor", "--learn"}), "doctor has no --learn");
  EXPECT_EQ(refused({"selftest", "--input", "a"}), "selftest has no --input");
  EXPECT_EQ(refused({"selftest", "-c", "1"}), "selftest takes no program");
}

TEST(Arguments, AMarkNeedsACommand) {
  EXPECT_THAT(refused({"--"}), HasSubstr("needs a command"));
  EXPECT_THAT(refused({"-l", "python", "--", "ls"}), HasSubstr("-l"));
}

TEST(Arguments, HelpVersionAndConfigWinOverARun) {
  EXPECT_EQ(parsed({"--help"}).verb, Verb::kHelp);
  EXPECT_EQ(parsed({"-h"}).verb, Verb::kHelp);
  EXPECT_EQ(parsed({"doctor", "--help"}).verb, Verb::kHelp);
  EXPECT_EQ(parsed({"--version"}).verb, Verb::kVersion);
  EXPECT_EQ(parsed({"--print-config"}).verb, Verb::kPrintConfig);
  EXPECT_THAT(parsed({"a.py", "--help"}).args, ElementsAre("--help"));
}

TEST(Arguments, HelpAfterAVerbIsOfThatVerb) {
  EXPECT_EQ(parsed({"--help"}).about, Verb::kRun);
  EXPECT_EQ(parsed({"doctor", "--help"}).about, Verb::kDoctor);
  EXPECT_EQ(parsed({"-h", "selftest"}).about, Verb::kSelftest);
  EXPECT_EQ(parsed({"explain", "-t", "3", "-h"}).about, Verb::kExplain);
  const std::pair<Verb, std::string> pages[] = {{Verb::kDoctor, "sbx-run doctor"},
                                                {Verb::kSelftest, "sbx-run selftest"},
                                                {Verb::kExplain, "sbx-run explain"},
                                                {Verb::kRun, "sbx-run"}};
  for (const auto& [verb, name] : pages) {
    EXPECT_THAT(help_text(verb), StartsWith(name + ": "));
    EXPECT_THAT(help_text(verb), HasSubstr("Exit codes: "));
  }
}

TEST(Arguments, HelpNamesEveryOption) {
  const std::string help = help_text();
  for (const char* const option :
       {"--language", "--timeout",    "--cpu-time",      "--memory", "--cpus",         "--pids",
        "--input",    "--output-dir", "--env",           "--stdin",  "--json",         "--profile",
        "--rootfs",   "--net",        "--allow-missing", "--learn",  "--print-config", "--version",
        "doctor",     "selftest",     "explain"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
}

}  // namespace
}  // namespace sbx::cli
