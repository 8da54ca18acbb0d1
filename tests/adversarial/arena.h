// Arena: a sandbox to be attacked, on ground of its own, whose layers can be switched off
// (layers_off.h), and the fixture of adversarial tests.
//
// Its image is `bare`, made here: directories and nothing to run but what a test brings, so that no
// attack hangs on a tool that is missing. What attacks is sbx-probe (runtime/cli/probe) or a static
// program of tests/programs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cli/selftest_cases.h"
#include "tests/adversarial/layers_off.h"
#include "tests/integration/own_ground.h"

namespace sbx::test {

// One act of sbx-probe.
struct Trial {
  std::string act, argument;
};

class Arena {
 public:
  // `rootfs`: "bare", "host" for programs that need the host's libraries, or an image's name.
  [[nodiscard]] static Result<std::unique_ptr<Arena>> open(const std::string& rootfs = "bare");

  // A run of sbx-probe, or of tests/programs/NAME, both under /input.
  [[nodiscard]] static plan::Request probe(const std::string& act,
                                           const std::string& argument = "");
  [[nodiscard]] static plan::Request program(const std::string& name,
                                             std::vector<std::string> arguments = {});

  // One act inside. A run that did not take place, or did not end by itself, is trouble.
  [[nodiscard]] cli::Observation attack(const std::string& act, const std::string& argument = "",
                                        const Weakening& weakening = {});
  // Several, each in a process of its own of one run. Only for acts that do not end the run.
  [[nodiscard]] std::vector<cli::Observation> each(const std::vector<Trial>& trials,
                                                   const Weakening& weakening = {});
  [[nodiscard]] Result<collect::Outcome> run(const plan::Request& request,
                                             const Weakening& weakening = {}, RunHooks hooks = {});

  // Pid 1 of the only run under way, as this process sees it; -1 when there is none.
  [[nodiscard]] pid_t init_pid() const;
  [[nodiscard]] BreakableSandbox& sandbox() { return *sandbox_; }
  [[nodiscard]] const OwnGround& ground() const { return ground_; }
  // Of the image `bare`: to plant something before a run.
  [[nodiscard]] std::string rootfs() const { return image_directory() + "/bare/1/rootfs"; }
  // Ends the sandbox; what it left, as lines.
  [[nodiscard]] Things close();

 private:
  Arena();
  [[nodiscard]] std::string image_directory() const { return images_.path() + "/images"; }
  OwnGround ground_;
  TemporaryDirectory images_;
  std::unique_ptr<BreakableSandbox> sandbox_;
};

// Opens an arena for each test, skips (visibly) where the host cannot run a sandbox, and fails when
// a test leaves anything behind.
class AdversarialTest : public ::testing::Test {
 protected:
  explicit AdversarialTest(std::string rootfs = "bare") : rootfs_(std::move(rootfs)) {}
  void SetUp() override;
  void TearDown() override;
  [[nodiscard]] Arena& arena() { return *arena_; }

 private:
  std::string rootfs_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace sbx::test
