// ToolsDriver: tool-calling mode. The model runs programs with the tool run_code until it answers.
//
// Nothing raises into the loop: an unknown tool, arguments that are no JSON or lack a field, a
// language that there is not and a sandbox that is down are answers to the model, marked as errors.
// So is a reply that is no answer; of one with more than providers::kMaxToolCalls calls the first
// are done, and the model is told that the others were not. It ends with an answer, with a hostile
// call of a program, after `budget.attempts` replies, when a ceiling is reached, or when the model
// cannot be asked. A coroutine on the loop; ends by itself once `stop` is raised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agentd/loop/model_step.h"
#include "agentd/loop/run_step.h"
#include "agentd/loop/services.h"
#include "agentd/loop/spending.h"
#include "agentd/record/record.h"
#include "http/async/cancellation.h"
#include "http/async/task.h"

namespace agentd::loop {

class ToolsDriver {
 public:
  // As Driver.
  ToolsDriver(const Services& services, const Submission& submission, record::Record& record,
              const sbx::async::Cancellation& stop, OnChange on_change);

  [[nodiscard]] sbx::async::Task<void> run();

 private:
  // nullopt: go on with another call of the model.
  [[nodiscard]] sbx::async::Task<std::optional<Ending>> iterate();
  [[nodiscard]] sbx::async::Task<std::optional<Ending>> learn_sandbox();
  [[nodiscard]] sbx::async::Task<std::optional<Ending>> prepare();
  [[nodiscard]] sbx::async::Task<std::optional<Ending>> use_tools(
      std::vector<providers::ToolCall> calls, bool more_were_made);
  [[nodiscard]] sbx::async::Task<std::optional<Ending>> run_code(std::string language,
                                                                 std::string code,
                                                                 record::ToolUse& use);
  [[nodiscard]] std::optional<Ending> take_answer(const providers::Completion& reply);
  void answer(const std::string& id, record::ToolUse use);
  void enter(Phase phase);
  [[nodiscard]] Ending ending_of(const Event& event) const;

  const Services& services_;
  const Submission& submission_;
  record::Record& record_;
  const sbx::async::Cancellation& stop_;
  OnChange on_change_;

  Spending spending_;
  ModelStep model_;
  RunStep runs_;
  std::vector<providers::Message> conversation_;
  std::vector<providers::Tool> tools_;
  sandbox::SharedInfo info_;
  std::vector<std::string> languages_;  // names and aliases
  std::string detail_;                  // as Driver
  std::string fix_;
};

// The arguments of run_code as the model wrote them, taken apart. `error` is what the model is told
// when they will not do.
struct RunCodeArguments {
  std::string language{};
  std::string code{};
  std::string error{};
};
[[nodiscard]] RunCodeArguments parse_run_code(const std::string& arguments,
                                              const std::vector<std::string>& languages);

// What keeps a reply without tool calls from being the answer: it was withheld, cut, or is empty.
[[nodiscard]] std::optional<record::Error> fault_of_answer(const providers::Completion& reply);

// A run as the model is told of it: exit code, notes, both streams, each cut in the middle where it
// is long, wrapped in <data>.
[[nodiscard]] std::string describe_run(const sandbox::RunResult& run);

}  // namespace agentd::loop
