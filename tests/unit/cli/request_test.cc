#include "runtime/cli/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/support/process.h"

namespace sbx::cli {
namespace {

using test::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Arguments file_arguments(const std::string& path) {
  Arguments arguments;
  arguments.source = Source::kFile;
  arguments.program = path;
  return arguments;
}

Arguments code_arguments(std::string code) {
  Arguments arguments;
  arguments.source = Source::kCode;
  arguments.program = std::move(code);
  return arguments;
}

Error refusal(const Arguments& arguments, const policy::Limits& limits = {}) {
  const Result<plan::Request> request = make_request(arguments, limits);
  EXPECT_FALSE(request.has_value());
  if (request) return {};
  EXPECT_EQ(request.error().code, ErrorCode::kInvalid);
  return request.error();
}

class RequestTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
};

TEST_F(RequestTest, TheLanguageIsGuessedFromTheName) {
  const auto language = [this](const std::string& name) {
    const Result<plan::Request> request =
        make_request(file_arguments(directory_.write(name, "x")), {});
    return request ? request->language : to_string(request.error());
  };
  EXPECT_EQ(language("a.py"), "python");
  EXPECT_EQ(language("a.js"), "javascript");
  EXPECT_EQ(language("a.sh"), "bash");
}

TEST_F(RequestTest, AnUnknownNameListsTheLanguages) {
  const Error error = refusal(file_arguments(directory_.write("a.xyz", "x")));
  EXPECT_THAT(error.detail, HasSubstr("a.xyz"));
  EXPECT_THAT(error.fix, HasSubstr("python"));
  EXPECT_THAT(error.fix, HasSubstr("javascript"));
  EXPECT_THAT(error.fix, HasSubstr("bash"));
}

TEST_F(RequestTest, AnUnknownLanguageListsTheLanguages) {
  Arguments arguments = code_arguments("x");
  arguments.language = "cobol";
  const Error error = refusal(arguments);
  EXPECT_THAT(error.detail, HasSubstr("cobol"));
  EXPECT_THAT(error.fix, HasSubstr("python"));
}

TEST_F(RequestTest, AliasesAreResolved) {
  Arguments arguments = code_arguments("x");
  arguments.language = "node";
  EXPECT_EQ(make_request(arguments, {})->language, "javascript");
}

TEST_F(RequestTest, ScriptsOfAnyBytesAreTakenAsTheyAre) {
  for (const std::string& text :
       {std::string(), std::string("\0\0", 2), std::string("\xef\xbb\xbfx")}) {
    const Result<plan::Request> request =
        make_request(file_arguments(directory_.write("a.py", text)), {});
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->code, text);
  }
}

TEST_F(RequestTest, CodeMayHaveSixteenMegabytesAndNotOneByteMore) {
  const std::string most(policy::kMaxCodeBytes, '#');
  EXPECT_TRUE(make_request(file_arguments(directory_.write("a.py", most)), {}).has_value());
  EXPECT_THAT(refusal(file_arguments(directory_.write("b.py", most + "#"))).detail,
              HasSubstr("16M"));
  EXPECT_THAT(refusal(code_arguments(most + "#")).detail, HasSubstr("16M"));
}

TEST_F(RequestTest, AMissingFileAndADirectoryAreNamed) {
  EXPECT_THAT(to_string(refusal(file_arguments("/no/such.py"))), HasSubstr("/no/such.py"));
  const std::string path = directory_.path() + "/d.py";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  EXPECT_THAT(refusal(file_arguments(path)).detail, HasSubstr("directory"));
}

TEST_F(RequestTest, InputsAreReadUnderTheirNames) {
  Arguments arguments = code_arguments("x");
  arguments.inputs = {directory_.write("a.csv", "1,2"), directory_.write("b", "3") + ":data.csv"};
  const Result<plan::Request> request = make_request(arguments, {});
  ASSERT_TRUE(request.has_value()) << to_string(request.error());
  ASSERT_EQ(request->files.size(), 2U);
  EXPECT_EQ(request->files[0].name, "a.csv");
  EXPECT_EQ(request->files[0].content, "1,2");
  EXPECT_EQ(request->files[1].name, "data.csv");
}

TEST_F(RequestTest, TwoInputsOfOneNameAreRefused) {
  Arguments arguments = code_arguments("x");
  const std::string path = directory_.write("a", "1");
  arguments.inputs = {path, path};
  EXPECT_THAT(refusal(arguments).detail, HasSubstr("two inputs"));
}

TEST_F(RequestTest, OnlyRegularFilesAreInputs) {
  Arguments arguments = code_arguments("x");
  const std::string fifo = directory_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0644), 0);
  for (const std::string& path : {fifo, directory_.path(), std::string("/dev/zero:zero")}) {
    arguments.inputs = {path};
    EXPECT_THAT(refusal(arguments).detail, HasSubstr("not a regular file")) << path;
  }
}

TEST_F(RequestTest, AFifoThatNobodyWritesToIsNotWaitedForLongerThanTheRunMayTake) {
  const std::string fifo = directory_.path() + "/program.py";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0644), 0);
  Arguments arguments;
  arguments.source = Source::kFile;
  arguments.program = fifo;
  policy::Limits limits;
  limits.wall_seconds = std::chrono::milliseconds(50);
  EXPECT_THAT(refusal(arguments, limits).detail, HasSubstr("nobody has written to it for 0.05 s"));

  limits.wall_seconds = std::chrono::minutes(1);
  std::thread writer([&fifo] { std::ofstream(fifo) << "print(1)"; });
  const Result<plan::Request> request = make_request(arguments, limits);
  writer.join();
  ASSERT_TRUE(request.has_value()) << to_string(request.error());
  EXPECT_EQ(request->code, "print(1)");
}

TEST_F(RequestTest, InputsOverTheirLimitAreRefusedWithBothFigures) {
  policy::Limits limits;
  limits.input = 8192;
  Arguments arguments = code_arguments("x");
  arguments.inputs = {directory_.write("a", std::string(8192, 'x'))};
  EXPECT_TRUE(make_request(arguments, limits).has_value());
  arguments.inputs.push_back(directory_.write("b", "y"));
  const Error error = refusal(arguments, limits);
  EXPECT_THAT(error.detail, HasSubstr("1 bytes"));
  EXPECT_THAT(error.detail, HasSubstr("8K"));
}

TEST_F(RequestTest, AnInputSpellingIsTakenApartAtTheLastColon) {
  const auto name = [](const std::string& text) { return parse_input(text)->name; };
  EXPECT_EQ(name("/a/b.csv"), "b.csv");
  EXPECT_EQ(name("/a/b.csv:c"), "c");
  EXPECT_EQ(name("/a:b/c.csv"), "c.csv");
  const std::string with_colon = directory_.write("x:y", "");
  EXPECT_EQ(name(with_colon), "x:y");
  (void)directory_.write("x", "");
  EXPECT_EQ(name(with_colon), "y");
  // A directory is no input: what follows it is a path that is not there.
  EXPECT_EQ(name(directory_.path() + ":x/y"), "y");
}

TEST_F(RequestTest, AnInputNameIsOneComponent) {
  for (const std::string text : {"/a:", "/a:.", "/a:..", ":x", "/", "", "/a/.."}) {
    EXPECT_FALSE(parse_input(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_input("/a:" + std::string(256, 'n')).has_value());
  EXPECT_TRUE(parse_input("/a:" + std::string(255, 'n')).has_value());
  const std::string file = directory_.write("file", "");
  for (const std::string name : {"a/b", "/b", "../b", "a/"}) {
    const auto refused = parse_input(file + ":" + name);
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().detail, HasSubstr("'" + name + "' is no name")) << name;
  }
}

TEST_F(RequestTest, EnvironmentIsKeyAndValue) {
  Arguments arguments = code_arguments("x");
  arguments.env = {"A=1=2", "B="};
  const Result<plan::Request> request = make_request(arguments, {});
  ASSERT_TRUE(request.has_value());
  EXPECT_THAT(request->env,
              ::testing::ElementsAre(::testing::Pair("A", "1=2"), ::testing::Pair("B", "")));
  for (const char* const bad : {"A", "=x", ""}) {
    arguments.env = {bad};
    EXPECT_THAT(refusal(arguments).detail, HasSubstr("K=V"));
  }
}

TEST_F(RequestTest, LimitsAndMissingLayersReachThePolicy) {
  Arguments arguments;
  arguments.limits = {{"memory", "1G"}, {"wall_seconds", "1.5"}, {"wall_seconds", "2"}};
  arguments.allow_missing = {"cgroup"};
  const Result<policy::Policy> policy = make_policy(arguments);
  ASSERT_TRUE(policy.has_value()) << to_string(policy.error());
  EXPECT_EQ(policy->limits.memory, 1024 * policy::kMiB);
  EXPECT_EQ(policy->limits.wall_seconds, std::chrono::milliseconds(2000));
  EXPECT_EQ(policy->allow_missing, policy::layer_bit(policy::Layer::kCgroup));
}

TEST_F(RequestTest, AProfileThatWasReadIsNotReadAgain) {
  Arguments arguments;
  arguments.profile = "/no/such.toml";
  EXPECT_FALSE(make_policy(arguments).has_value()) << "control";
  const auto policy = make_policy(arguments, "name = \"mine\"\ndescription = \"d\"\n");
  ASSERT_TRUE(policy.has_value()) << to_string(policy.error());
  EXPECT_EQ(policy->profile, "mine");
  EXPECT_THAT(make_policy(arguments, "x").error().detail, HasSubstr("/no/such.toml"));
}

TEST_F(RequestTest, ABadLimitOrLayerIsRefused) {
  Arguments arguments;
  arguments.limits = {{"memory", "12Q"}};
  EXPECT_FALSE(make_policy(arguments).has_value());
  arguments.limits = {{"wall_seconds", "soon"}};
  EXPECT_THAT(make_policy(arguments).error().detail, StartsWith("--timeout: 'soon'"));
  arguments.limits = {};
  arguments.allow_missing = {"wall"};
  const Result<policy::Policy> policy = make_policy(arguments);
  ASSERT_FALSE(policy.has_value());
  EXPECT_THAT(policy.error().fix, HasSubstr("cgroup"));
}

}  // namespace
}  // namespace sbx::cli
