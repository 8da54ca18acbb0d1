#include "tests/adversarial/inside.h"

namespace sbx::test {

std::string program_path(const std::string& name) {
  return std::string(SBX_TEST_PROGRAMS) + "/" + name;
}

std::vector<std::string> InsideTest::inside(std::vector<std::string> flags, const std::string& name,
                                            const std::vector<std::string>& arguments) {
  flags.insert(flags.end(), {"--input", program_path(name), "--", "/input/" + name});
  flags.insert(flags.end(), arguments.begin(), arguments.end());
  return flags;
}

nlohmann::json InsideTest::attack(std::vector<std::string> flags, const std::string& name,
                                  const std::vector<std::string>& arguments) const {
  return run_json(inside(std::move(flags), name, arguments));
}

Finished InsideTest::outside(const std::string& name,
                             const std::vector<std::string>& arguments) const {
  // A copy: the caller may not reach the build directory.
  const std::string copy = directory().write(name, read_text(program_path(name)));
  EXPECT_EQ(::chmod(copy.c_str(), 0755), 0);
  std::vector<std::string> words{copy};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_process(words, options());
}

ThrownAway thrown_away(const std::string& name, const std::vector<std::string>& arguments,
                       const ThrowAwayLimits& limits) {
  const OwnGround ground;
  auto ended = run_thrown_away(ground, program_path(name), arguments, limits);
  EXPECT_TRUE(ended) << "the control was not run: " << to_string(ended.error());
  EXPECT_TRUE(ground.leaked().empty()) << "the control left something";  // reaps what was orphaned
  return ended ? *std::move(ended) : ThrownAway{};
}

std::string profile_text(const std::string& limits, const std::string& seccomp) {
  std::string text = "name = \"test\"\ndescription = \"A test's\"\n[limits]\n" + limits;
  if (!seccomp.empty()) text += "[seccomp]\n" + seccomp;
  return text;
}

}  // namespace sbx::test
