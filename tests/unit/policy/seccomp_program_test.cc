// Programs that are written backwards: each value must reach its target, however far that is.
#include "runtime/policy/seccomp_program.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <cstddef>

#include "tests/support/bpf_interpreter.h"

namespace sbx::policy {
namespace {

using Target = BpfProgram::Target;

std::optional<std::uint32_t> answer(const BpfProgram& program, std::uint32_t nr) {
  return test::run_filter(program.bytes(), {nr, 0, 0, {}});
}

void load_number(BpfProgram& program, const Target& next) {
  program.load(offsetof(seccomp_data, nr), next);
}

TEST(BpfProgram, TellsThousandsOfValuesApart) {
  BpfProgram program;
  BpfProgram::Ranges ranges;
  for (std::uint32_t i = 0; i < 2000; ++i) ranges[i * 3] = BpfProgram::ret(i);
  load_number(program, program.choose(ranges));
  for (std::uint32_t nr = 0; nr < 6100; ++nr) {
    ASSERT_EQ(answer(program, nr), std::min(nr / 3, 1999U)) << nr;
  }
  EXPECT_EQ(answer(program, 0xffffffff), 1999U);
}

TEST(BpfProgram, ReachesPlacesThatAreFarAway) {
  BpfProgram program;
  const Target seen = program.load(offsetof(seccomp_data, arch), BpfProgram::ret(7));
  BpfProgram::Ranges ranges;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ranges[i] = i % 2 == 0 ? seen : BpfProgram::ret(i % 9 + 100);
  }
  load_number(program, program.choose(ranges));
  for (std::uint32_t nr = 0; nr < 1000; ++nr) {
    ASSERT_EQ(answer(program, nr), nr % 2 == 0 ? 7 : nr % 9 + 100) << nr;
  }
}

TEST(BpfProgram, TakesNeighboursOfOneTargetTogether) {
  BpfProgram program;
  std::map<std::uint32_t, Target> values;
  for (std::uint32_t nr = 100; nr < 200; ++nr) values[nr] = BpfProgram::ret(1);
  load_number(program, program.choose_value(values, BpfProgram::ret(2)));
  EXPECT_LE(program.bytes().size() / sizeof(sock_filter), 5U);
  for (const std::uint32_t nr : {0U, 99U, 200U, 0xffffffffU}) EXPECT_EQ(answer(program, nr), 2U);
  for (const std::uint32_t nr : {100U, 150U, 199U}) EXPECT_EQ(answer(program, nr), 1U);
}

TEST(BpfProgram, KnowsTheFirstAndTheLastValue) {
  BpfProgram program;
  load_number(program,
              program.choose_value({{0, BpfProgram::ret(1)}, {0xffffffff, BpfProgram::ret(2)}},
                                   BpfProgram::ret(3)));
  EXPECT_EQ(answer(program, 0), 1U);
  EXPECT_EQ(answer(program, 1), 3U);
  EXPECT_EQ(answer(program, 0xfffffffe), 3U);
  EXPECT_EQ(answer(program, 0xffffffff), 2U);
}

TEST(BpfProgram, LooksAtTheBitsOfAMaskAlone) {
  BpfProgram program;
  const Target chosen = program.choose_value({{0x20, BpfProgram::ret(1)}}, BpfProgram::ret(2));
  load_number(program, program.mask(0xf0, chosen));
  for (const std::uint32_t nr : {0x20U, 0x2fU, 0xffffff2fU}) EXPECT_EQ(answer(program, nr), 1U);
  for (const std::uint32_t nr : {0U, 0x30U, 0x60U}) EXPECT_EQ(answer(program, nr), 2U);
}

TEST(BpfProgram, WithoutAChoiceGoesStraightOn) {
  BpfProgram program;
  const Target far = program.load(offsetof(seccomp_data, arch), BpfProgram::ret(7));
  program.load(offsetof(seccomp_data, arch), BpfProgram::ret(8));
  load_number(program, program.choose({{0, far}, {5, far}}));
  EXPECT_EQ(answer(program, 3), 7U);
}

}  // namespace
}  // namespace sbx::policy
