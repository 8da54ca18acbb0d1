// Every attack of the catalogue that `sbx-run selftest` ships (runtime/cli/selftest_*.cc), one test
// each: stopped inside in exact words, and not stopped outside.
#include <gmock/gmock.h>

#include <iostream>

#include "runtime/cli/selftest_control.h"
#include "tests/adversarial/arena.h"

namespace sbx::test {
namespace {

using cli::AttackCase;
using cli::CaseState;

class Catalogue : public AdversarialTest, public ::testing::WithParamInterface<AttackCase> {
 protected:
  static void TearDownTestSuite() {
    if (not_applicable_.empty()) return;
    std::cout << not_applicable_.size() << " not applicable on this host:\n";
    for (const std::string& line : not_applicable_) std::cout << "  " << line << "\n";
  }
  static inline std::vector<std::string> not_applicable_;
};

// Not applicable is no pass: such cases are counted and listed. A case can only be that where its
// table says so (an errno of a host without the facility, a caller who may be confined alike).
TEST_P(Catalogue, IsStoppedInsideAndNotOutside) {
  const AttackCase& attack = GetParam();
  const auto ground = cli::ControlGround::prepare();
  ASSERT_TRUE(ground) << to_string(ground.error());
  const auto inside = arena().attack(std::string(attack.act), ground->resolve(attack.argument));
  const auto control = cli::run_control(attack, *ground);
  const CaseState state = cli::judge(attack, inside, control);
  const std::string words = std::string(attack.name) + ": " + cli::describe(inside) + "; outside " +
                            (control ? cli::describe(*control) : "needs root");
  EXPECT_THAT(state, ::testing::AnyOf(CaseState::kPass, CaseState::kNotApplicable)) << words;
  if (state == CaseState::kNotApplicable) not_applicable_.push_back(words);
}

std::string test_name(const ::testing::TestParamInfo<AttackCase>& info) {
  std::string name(cli::attack_class_name(info.param.attack_class));
  name += "_";
  name += info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Attacks, Catalogue,
                         ::testing::ValuesIn(cli::attack_cases().begin(),
                                             cli::attack_cases().end()),
                         test_name);

}  // namespace
}  // namespace sbx::test
