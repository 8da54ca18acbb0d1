// The fixture of attack classes that are run through the built sbx-run, as both callers, and the
// programs of tests/programs that attack.
#pragma once

#include <string>
#include <vector>

#include "tests/adversarial/throw_away.h"
#include "tests/integration/fixture.h"

namespace sbx::test {

// The path of tests/programs/NAME.
[[nodiscard]] std::string program_path(const std::string& name);

class InsideTest : public SandboxTest {
 protected:
  // sbx-run's words for a program of tests/programs.
  [[nodiscard]] static std::vector<std::string> inside(
      std::vector<std::string> flags, const std::string& name,
      const std::vector<std::string>& arguments = {});
  // Its result as JSON. Fails the test when there is none.
  [[nodiscard]] nlohmann::json attack(std::vector<std::string> flags, const std::string& name,
                                      const std::vector<std::string>& arguments = {}) const;
  // The control: the same program without a sandbox, as the same caller, with a reader that keeps
  // all it says. Only for acts that harm nothing; others go to run_thrown_away().
  [[nodiscard]] Finished outside(const std::string& name,
                                 const std::vector<std::string>& arguments = {}) const;
};

// The control in a throw-away place; fails the test when there was none.
[[nodiscard]] ThrownAway thrown_away(const std::string& name,
                                     const std::vector<std::string>& arguments = {},
                                     const ThrowAwayLimits& limits = {});

// A profile for --profile: the default one with these lines in [limits] and [seccomp].
[[nodiscard]] std::string profile_text(const std::string& limits, const std::string& seccomp = "");

}  // namespace sbx::test
