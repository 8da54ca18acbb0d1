#include "tests/adversarial/neighbours.h"

#include "runtime/base/sys.h"

namespace sbx::test {

void NeighboursTest::TearDown() {
  input_.reset();
  input_writer_.reset();
  AdversarialTest::TearDown();
}

std::unique_ptr<RunInFlight> NeighboursTest::leave(const std::string& what,
                                                   const Weakening& weakening) {
  auto input = sys::pipe();
  EXPECT_TRUE(input);
  if (!input) return nullptr;
  input_ = std::move(input->first);
  input_writer_ = std::move(input->second);
  said_.clear();
  RunHooks hooks;
  hooks.stdin_fd = input_.get();
  hooks.on_stdout = [this](std::string_view bytes) { said_ += bytes; };
  auto run = arena().sandbox().start(Arena::program("traces", {"leave", what}), weakening,
                                     std::move(hooks));
  EXPECT_TRUE(run) << to_string(run.error());
  if (!run) return nullptr;
  for (int i = 0; i < 100 && said_ != "left\n" && !(*run)->done(); ++i) {
    turn(**run, std::chrono::milliseconds(200));
  }
  EXPECT_EQ(said_, "left\n");
  if (said_ != "left\n") return nullptr;
  return *std::move(run);
}

std::string NeighboursTest::found(const std::string& how, const std::string& what,
                                  const Weakening& weakening) {
  const auto outcome = arena().run(Arena::program("traces", {how, what}), weakening);
  if (!outcome) return to_string(outcome.error());
  return outcome->ok() ? outcome->stdout_bytes : collect::to_json(*outcome);
}

}  // namespace sbx::test
