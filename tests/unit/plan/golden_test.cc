// The printed plan of every shipped profile, compared byte for byte, so that a review sees in words
// what a change does to a sandbox. SBX_UPDATE_GOLDEN=1 build/tests/plan_test writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

namespace fs = std::filesystem;

bool updating() {
  const char* update = std::getenv("SBX_UPDATE_GOLDEN");
  return update != nullptr && std::string(update) == "1";
}

// Instruction counts and the policy's digest are those of one architecture.
bool is_reference_architecture() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Case {
  std::string profile;
  std::string kind;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& profile : policy::shipped_profiles()) {
    all.push_back({profile, "python"});
    all.push_back({profile, "argv"});
  }
  return all;
}

fs::path golden_file(const Case& which) {
  return fs::path(SBX_GOLDEN) / (which.profile + "." + which.kind + ".txt");
}

Request request_of(const Case& which) {
  if (which.kind == "argv") return command({"grep", "-c", "x", "/input/data.txt"});
  Request request = python();
  request.files.push_back({"data.txt", "x\n"});
  return request;
}

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, ThePrintedPlanIsAsReviewed) {
  if (!is_reference_architecture()) GTEST_SKIP() << "the files are x86-64's";
  const auto policy = policy::load_policy(GetParam().profile);
  ASSERT_TRUE(policy);
  const auto plan = make_plan(*policy, request_of(GetParam()), synthetic_host());
  ASSERT_TRUE(plan) << to_string(plan.error());
  const std::string text = plan_text(*plan);
  const fs::path file = golden_file(GetParam());
  if (updating()) std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  EXPECT_EQ(text, read(file)) << "read the difference; if it is meant: SBX_UPDATE_GOLDEN=1 "
                                 "build/tests/plan_test, and commit "
                              << file;
}

INSTANTIATE_TEST_SUITE_P(Plans, Golden, ::testing::ValuesIn(cases()), [](const auto& chosen) {
  return chosen.param.profile + "_" + chosen.param.kind;
});

TEST(GoldenFiles, AreThoseOfTheShippedProfilesAndNoOthers) {
  std::set<fs::path> expected;
  for (const Case& which : cases()) expected.insert(golden_file(which));
  std::set<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(SBX_GOLDEN)) {
    found.insert(entry.path());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace sbx::plan::test
