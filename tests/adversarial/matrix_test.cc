// Each layer alone, and all but each: what it stops. The result is docs/attack-matrix.md, compared
// line by line; SBX_UPDATE_GOLDEN=1 build/tests/adversarial_matrix_test writes it anew. An attack
// that does not apply on this host keeps its line.
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/cli/selftest_control.h"
#include "tests/adversarial/matrix.h"
#include "tests/adversarial/matrix_text.h"

namespace sbx::test {
namespace {

using cli::CaseState;
using ::testing::AnyOf;
using ::testing::IsEmpty;

// Made once: some thousand attacks.
class Matrix : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Boxes without these layers have the caller's: here they end with us.
    if (::geteuid() != 0 || ::unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0) {
      why_not_ = "only root may give the boxes namespaces to share";
      return;
    }
    ASSERT_TRUE(cli::lead_everything_to_loopback().ok());
    auto arena = Arena::open();
    if (!arena) {
      why_not_ = to_string(arena.error());
      return;
    }
    {
      const auto ground = cli::ControlGround::prepare();
      ASSERT_TRUE(ground) << to_string(ground.error());
      rows_ = make_matrix(**arena, *ground);
    }
    const Things left = (*arena)->close();
    EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
  }
  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
    ASSERT_FALSE(rows_.empty());
  }
  static inline std::string why_not_;
  static inline std::vector<MatrixRow> rows_;
};

TEST_F(Matrix, StopsEveryAttackWithAllLayers) {
  for (const MatrixRow& row : rows_) {
    EXPECT_THAT(row.state, AnyOf(CaseState::kPass, CaseState::kNotApplicable)) << row.attack->name;
  }
}

TEST_F(Matrix, StopsEveryAttackByTwoLayersOrSaysWhyNot) {
  for (const MatrixRow& row : rows_) {
    if (row.state == CaseState::kNotApplicable) {
      EXPECT_NE(reason_for_row(row), "") << row.attack->name;
    } else if (row.state == CaseState::kPass) {
      EXPECT_EQ(!reason_for_one(row.attack->name).empty(), row.alone.size() < 2)
          << row.attack->name;
    }
  }
}

// What two layers stop each by itself does not get through when one of them is off.
TEST_F(Matrix, HoldsWithoutAnyOneOfTwoLayers) {
  for (const MatrixRow& row : rows_) {
    if (row.state != CaseState::kPass || row.alone.size() < 2) continue;
    EXPECT_THAT(row.needed, IsEmpty()) << row.attack->name;
  }
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(Matrix, IsAsReviewed) {
  const std::string file = SBX_MATRIX_FILE;
  const std::string reviewed = text_of(file);
  const std::string now = matrix_text(rows_, reviewed);
  const char* const update = std::getenv("SBX_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(file) << now;
  EXPECT_EQ(now, text_of(file)) << "read the difference; if it is meant: SBX_UPDATE_GOLDEN=1 "
                                   "build/tests/adversarial_matrix_test, and commit "
                                << file;
}

}  // namespace
}  // namespace sbx::test
