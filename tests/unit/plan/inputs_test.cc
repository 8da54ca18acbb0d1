// Files for /input: names, sizes, and the room that they leave.
#include <gmock/gmock.h>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

using ::testing::HasSubstr;

Request with_input(std::string name, std::string content = "x") {
  Request request = python("");
  request.files.push_back({std::move(name), std::move(content)});
  return request;
}

TEST(InputNames, AreOnePathComponent) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/a"),
        std::string("../a"), std::string("a\0b", 3), std::string(256, 'n')}) {
    expect_invalid(refused(with_input(name)), "is not one path component");
  }
  for (const std::string& name : {std::string("..."), std::string("-rf"), std::string("a b"),
                                  std::string("\xff"), std::string(255, 'n')}) {
    EXPECT_EQ(planned(with_input(name)).fill.size(), 2U) << name;
  }
}

TEST(InputNames, HaveNoControlCharacter) {
  for (const char* const name : {"a\n", "\x1b[2J", "\x7f", "a\tb"}) {
    expect_invalid(refused(with_input(name)), "has a control character");
  }
}

TEST(InputNames, AreGivenOnce) {
  Request request = with_input("a");
  request.files.push_back({"a", "y"});
  expect_invalid(refused(request), "two inputs are named 'a'");
}

TEST(Inputs, GoToInputWhetherThereIsCodeOrNot) {
  const Plan with_code = planned(with_input("data.csv", "1,2"));
  EXPECT_EQ(with_code.tmpfs.at(with_code.fill[1].tmpfs).target, "/input");
  Request request = command({"/bin/cat"});
  request.files.push_back({"data.csv", "1,2"});
  const Plan without = planned(request);
  ASSERT_EQ(without.fill.size(), 1U);
  EXPECT_EQ(without.tmpfs.at(without.fill[0].tmpfs).target, "/input");
  EXPECT_TRUE(without.tmpfs.at(without.fill[0].tmpfs).read_only);
}

TEST(Inputs, AreMeasuredAtTheLimitAndPastIt) {
  policy::Policy policy = default_policy();
  policy.limits.input = 4096;
  const auto plan = [&](std::size_t size) {
    return refused(with_input("a", std::string(size, 'x')), synthetic_host(), policy).detail;
  };
  EXPECT_EQ(plan(4096), "accepted");
  EXPECT_EQ(plan(4097), "inputs of 4097 bytes are over the input limit of 4K");
}

TEST(Inputs, AreCountedWithTheDirectoryThatHoldsThem) {
  policy::Policy policy = default_policy();
  policy.limits.input_inodes = 2;
  Request request = with_input("a");
  EXPECT_EQ(refused(request, synthetic_host(), policy).detail, "accepted");
  request.files.push_back({"b", ""});
  expect_invalid(refused(request, synthetic_host(), policy), "2 inputs are over input_inodes (2)");
}

TEST(Memory, ThatIsTooLittleForAnyProgramIsNotBlamedOnFiles) {
  policy::Policy policy = default_policy();
  policy.limits.memory = kLeastMemory - policy::kMiB;
  const Error error = refused(command({"/bin/true"}), synthetic_host(), policy);
  expect_invalid(error, "the memory limit of 3M is less than any program needs to start");
  EXPECT_EQ(error.fix, "raise --memory to 4M or more");
  policy.limits.memory = kLeastMemory;
  EXPECT_EQ(refused(command({"/bin/true"}), synthetic_host(), policy).detail, "accepted");
}

// The memory limit that a fix names, or 0.
std::uint64_t advised(const Error& error) {
  const std::string before = "raise --memory to ";
  if (error.fix.find(before) != 0) return 0;
  const std::size_t end = error.fix.find(' ', before.size());
  const auto size = policy::parse_size(error.fix.substr(before.size(), end - before.size()));
  return size ? *size : 0;
}

TEST(Memory, ThatAnErrorAdvisesIsEnough) {
  for (const std::uint64_t memory : {1U, 2U, 3U, 5U, 8U}) {
    for (const std::size_t input : {0U, 1U, 4096U, 6U * 1024 * 1024 + 1}) {
      policy::Policy policy = default_policy();
      policy.limits.memory = memory * policy::kMiB;
      const Request request = with_input("a", std::string(input, 'x'));
      const Error error = refused(request, synthetic_host(), policy);
      if (error.detail == "accepted") continue;
      policy.limits.memory = advised(error);
      EXPECT_EQ(refused(request, synthetic_host(), policy).detail, "accepted") << error.fix;
      policy.limits.memory -= policy::kMiB;
      EXPECT_EQ(advised(refused(request, synthetic_host(), policy)), advised(error));
    }
  }
}

TEST(Inputs, ThatLeaveNoRoomInMemoryAreRefusedWithBothFiguresAndTheFix) {
  policy::Policy policy = default_policy();
  policy.limits.memory = 8 * policy::kMiB;
  const std::string four(4 * policy::kMiB, 'x');
  EXPECT_EQ(refused(with_input("a", four), synthetic_host(), policy).detail, "accepted");
  const Error error = refused(with_input("a", four + "x"), synthetic_host(), policy);
  expect_invalid(error, "inputs and code of 4194305 bytes leave no room in the memory limit of 8M");
  EXPECT_EQ(error.fix, "raise --memory to 9M or more: files given to a run count in it");
}

TEST(Mounts, OfCodeAndInputAreThereOnlyForWhatTheyHold) {
  const auto targets = [](const Plan& plan) {
    std::string all;
    for (const TmpfsMount& mount : plan.tmpfs) all += mount.target + " ";
    return all;
  };
  EXPECT_EQ(targets(planned(command({"/bin/true"}))), "/tmp /output /work ");
  EXPECT_EQ(targets(planned(python())), "/tmp /output /work /code ");
  EXPECT_EQ(targets(planned(with_input("a"))), "/tmp /output /work /code /input ");
}

TEST(Mounts, WhereThePayloadMayWriteAreTheWritableTmpfsAlone) {
  EXPECT_THAT(planned(with_input("a")).writable,
              ::testing::ElementsAre("/tmp", "/output", "/work", "/dev/shm"));
}

TEST(Mounts, OfOutputAloneIsCollected) {
  for (const TmpfsMount& mount : planned(python()).tmpfs) {
    EXPECT_EQ(mount.collected, mount.target == "/output");
  }
}

}  // namespace
}  // namespace sbx::plan::test
