// Driver: the repair loop of one request. Does what each state of the machine stands for, and
// nothing else: the machine decides.
//
// A coroutine on the loop; owns nothing but its own steps. It ends by itself once `stop` is raised,
// after everything reserved is settled or released, so that nobody needs to destroy it half-way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agentd/envelope/code_block.h"
#include "agentd/loop/evaluate.h"
#include "agentd/loop/model_step.h"
#include "agentd/loop/run_step.h"
#include "agentd/loop/services.h"
#include "agentd/loop/spending.h"
#include "agentd/record/record.h"
#include "http/async/cancellation.h"
#include "http/async/task.h"

namespace agentd::loop {

class Driver {
 public:
  // All are borrowed and outlive it. `record` is that of a submitted request, as yet without
  // attempts.
  Driver(const Services& services, const Submission& submission, record::Record& record,
         const sbx::async::Cancellation& stop, OnChange on_change);

  // Until the record is at its end, result and reason filled in.
  [[nodiscard]] sbx::async::Task<void> run();

 private:
  [[nodiscard]] sbx::async::Task<Event> step();
  [[nodiscard]] sbx::async::Task<Event> ask_model();
  [[nodiscard]] sbx::async::Task<Event> execute();
  [[nodiscard]] Event evaluate();
  [[nodiscard]] Event report();

  [[nodiscard]] sbx::async::Task<std::optional<Event>> learn_sandbox();
  [[nodiscard]] std::vector<providers::Message> messages() const;
  [[nodiscard]] Event take_reply(ModelReply reply);
  void keep_good_run();
  [[nodiscard]] record::Attempt& attempt() { return record_.attempts.back(); }

  const Services& services_;
  const Submission& submission_;
  record::Record& record_;
  const sbx::async::Cancellation& stop_;
  OnChange on_change_;
  envelope::Language language_ = envelope::Language::kPython;

  Spending spending_;
  ModelStep model_;
  RunStep runs_;
  sandbox::SharedInfo info_;
  std::string last_reply_;                     // the model's last words,
  std::optional<prompts::Repair> repair_;      // and what was wrong with them
  std::optional<Ran> ran_;                     // the last run
  std::optional<sandbox::RunResult> last_ok_;  // the last one that ended ok
  std::string detail_;                         // what ended it, in somebody else's words
  std::string fix_;                            // the last that one of these came with
};

}  // namespace agentd::loop
