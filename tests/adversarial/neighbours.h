// Two runs at a time: one leaves what could be found, another looks for it (tests/programs/traces).
#pragma once

#include <memory>
#include <string>

#include "tests/adversarial/arena.h"

namespace sbx::test {

class NeighboursTest : public AdversarialTest {
 protected:
  void TearDown() override;
  // A run that has left its `what` ("names" or "keys") and lives on; ended by its destructor. Null,
  // with the test failed, when it did not come so far.
  [[nodiscard]] std::unique_ptr<RunInFlight> leave(const std::string& what,
                                                   const Weakening& weakening = {});
  // What a run says that looks ("find"), or that leaves and looks itself ("both"): the control.
  [[nodiscard]] std::string found(const std::string& how, const std::string& what,
                                  const Weakening& weakening = {});

 private:
  std::string said_;
  UniqueFd input_, input_writer_;  // of the run that lives on
};

}  // namespace sbx::test
