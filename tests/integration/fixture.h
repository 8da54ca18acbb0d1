// Tests of the built sbx-run, as the caller and as an ordinary user. Each test leaves nothing
// behind.
//
// As root every test runs twice: as root, and as a throw-away user who has one id, no home, and, on
// cgroup v1, groups of his own made by the fixture (what `sbx-run doctor` tells an administrator to
// make). Root alone hides faults. Where the host lacks something, the test is skipped and says why.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/leaks.h"
#include "tests/support/process.h"

namespace sbx::test {

enum class Caller { kSelf, kUser };
[[nodiscard]] std::string caller_name(const ::testing::TestParamInfo<Caller>& info);

inline constexpr uid_t kTestUser = 60451;

// An image `default` is where programs look for one.
[[nodiscard]] bool has_image();

// What an ordinary user needs of an administrator, undone at the end.
class UserGround {
 public:
  UserGround();
  UserGround(const UserGround&) = delete;
  UserGround& operator=(const UserGround&) = delete;
  ~UserGround();
  // Empty, or why this host cannot run a sandbox as another user.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // A copy of sbx-run that the user can reach.
  [[nodiscard]] const std::string& program() const { return program_; }

 private:
  void make_groups();
  TemporaryDirectory directory_;
  std::string program_;
  std::string trouble_;
  std::vector<std::string> groups_;
};

// How that user runs a program: his home is `directory`, and root's session is not his.
[[nodiscard]] ProcessOptions user_options(const TemporaryDirectory& directory);

class SandboxTest : public ::testing::TestWithParam<Caller> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The words of a command line, with sbx-run in front.
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const;
  [[nodiscard]] ProcessOptions options() const;
  [[nodiscard]] Finished run(std::vector<std::string> words) const;
  [[nodiscard]] Finished run(std::vector<std::string> words, const std::string& input) const;
  // With --json in front; fails the test when stdout is not one JSON document.
  [[nodiscard]] nlohmann::json run_json(std::vector<std::string> words) const;
  [[nodiscard]] bool is_user() const { return GetParam() == Caller::kUser; }
  // A directory that the caller may write to.
  [[nodiscard]] const TemporaryDirectory& directory() const { return *directory_; }

 private:
  std::optional<TemporaryDirectory> directory_;
  std::optional<UserGround> user_;
  std::optional<LeakCheck> check_;
};

// Notes' codes, for ::testing::Contains.
[[nodiscard]] std::vector<std::string> note_codes(const nlohmann::json& result);

}  // namespace sbx::test

// Runs the suite as both callers.
#define SBX_AS_BOTH_CALLERS(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                                      \
      Callers, suite, ::testing::Values(::sbx::test::Caller::kSelf, ::sbx::test::Caller::kUser), \
      ::sbx::test::caller_name)
