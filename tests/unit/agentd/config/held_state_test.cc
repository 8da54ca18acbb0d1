// The state directory under a running agentd: moved away, removed, replaced, put back.
#include "agentd/config/held_state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/process.h"

namespace agentd::config {
namespace {

class HeldStateTest : public ::testing::Test {
 public:
  HeldStateTest() {
    std::filesystem::create_directory(state_);
    for (const char* const name : {"agentd.lock", "agentd.db", "agentd.db-wal"}) write(name);
  }
  void write(const char* name) { (void)directory_.write(std::string("state/") + name, "x"); }
  void expect_gone(const HeldState& held, const std::string& path) {
    const auto there = held.check();
    ASSERT_FALSE(there) << path;
    EXPECT_EQ(there.error().code, sbx::ErrorCode::kHost);
    EXPECT_NE(to_string(there.error()).find(path + " was moved away"), std::string::npos);
    EXPECT_NE(there.error().fix, "");
  }

  sbx::test::TemporaryDirectory directory_;
  std::string state_ = directory_.path() + "/state";
  std::string away_ = directory_.path() + "/away";
};

TEST_F(HeldStateTest, IsGoneUntilItIsBack) {
  const auto held = HeldState::open(state_);
  ASSERT_TRUE(held) << to_string(held.error());
  for (const char* const name : {"", "/agentd.lock", "/agentd.db", "/agentd.db-wal"}) {
    const std::string path = state_ + name;
    EXPECT_TRUE(held->check());
    std::filesystem::rename(path, away_);
    expect_gone(*held, path);
    std::filesystem::copy(away_, path);  // another one in its place is not it
    expect_gone(*held, path);
    std::filesystem::remove_all(path);
    std::filesystem::rename(away_, path);
  }
  EXPECT_TRUE(held->check());
  std::filesystem::remove_all(state_);
  expect_gone(*held, state_);
}

TEST_F(HeldStateTest, IsNotHeldWithoutItsFiles) {
  std::filesystem::remove(state_ + "/agentd.db-wal");
  const auto held = HeldState::open(state_);
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().fix, "");
}

}  // namespace
}  // namespace agentd::config
