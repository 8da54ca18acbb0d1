#include "agentd/loop/tools_driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agentd/envelope/code_block.h"
#include "agentd/loop/artifacts.h"
#include "agentd/loop/ending_text.h"
#include "agentd/prompts/data_wrapper.h"
#include "agentd/providers/wire.h"

namespace agentd::loop {

using providers::Role;
using providers::ToolCall;
using sbx::async::Task;

namespace {

static_assert(providers::kMaxToolCalls == 16);
constexpr std::string_view kTooManyCalls =
    "\nThis was the last call that was looked at: a reply may make 16, and those behind it were "
    "not done.";

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

ToolsDriver::ToolsDriver(const Services& services, const Submission& submission,
                         record::Record& record, const sbx::async::Cancellation& stop,
                         OnChange on_change)
    : services_(services),
      submission_(submission),
      record_(record),
      stop_(stop),
      on_change_(std::move(on_change)),
      spending_(services, record),
      model_(services, spending_, stop),
      runs_(services, submission, spending_, stop) {}

void ToolsDriver::enter(Phase phase) {
  record_.state.phase = phase;
  on_change_(record_);
}

Task<void> ToolsDriver::run() {
  std::optional<Ending> ending = co_await prepare();
  while (!ending) ending = co_await iterate();
  record_.state.ending = *ending;
  record_.state.phase = Phase::kDone;
  record::end_attempts(record_);
  set_reason(record_, detail_, fix_);
  if (ending->reason == Reason::kPassed) record_.reason_text = "the model answered";
  on_change_(record_);
}

// Nothing is asked of a model before the sandbox is known to be there, now.
Task<std::optional<Ending>> ToolsDriver::learn_sandbox() {
  std::optional<Ending> ending;
  LearnOutcome outcome = co_await runs_.learn(record_.files);
  if (const auto* none = std::get_if<NotRun>(&outcome)) {
    detail_ = none->detail;
    fix_ = none->fix;
    ending = ending_of(none->event);
  } else {
    info_ = std::get<sandbox::SharedInfo>(std::move(outcome));
  }
  co_return ending;
}

Task<std::optional<Ending>> ToolsDriver::prepare() {
  std::optional<Ending> ending = co_await learn_sandbox();
  if (ending) co_return ending;
  const sandbox::SandboxInfo& info = *info_;
  conversation_ = services_.composer.tools(record_.text, submission_.files_description, info);
  tools_.push_back(services_.composer.run_code_tool(info));
  for (const sandbox::LanguageInfo& language : info.languages) {
    languages_.push_back(language.name);
    languages_.insert(languages_.end(), language.aliases.begin(), language.aliases.end());
  }
  co_return ending;
}

Ending ToolsDriver::ending_of(const Event& event) const {
  switch (event.kind) {
    case Event::Kind::kCancelled:
      return {.reason = Reason::kCancelled};
    case Event::Kind::kLedgerFailed:
      return {.reason = Reason::kLedger};
    case Event::Kind::kCeilingReached:
      return {.reason = Reason::kCeiling, .ceiling = event.ceiling};
    case Event::Kind::kProviderFailed:
      return {.reason = Reason::kProvider, .failure = FailureClass::kProvider};
    case Event::Kind::kSandboxFailed:
      return {.reason = Reason::kSandbox, .failure = FailureClass::kSandbox};
    default:
      return {.reason = Reason::kInternal};
  }
}

Task<std::optional<Ending>> ToolsDriver::iterate() {
  std::optional<Ending> ending;
  if (stop_.cancelled()) {
    ending = Ending{.reason = Reason::kCancelled};
    co_return ending;
  }
  if (record_.state.attempt >= record_.budget.attempts) {
    ending = Ending{.reason = Reason::kCeiling, .ceiling = Ceiling::kAttempts};
    co_return ending;
  }
  enter(Phase::kGenerate);
  ending = co_await learn_sandbox();
  if (ending) co_return ending;
  providers::RecordingKey key;
  key.request_sha256 = submission_.request_sha256;
  key.label = record_.label;
  key.call = record_.state.attempt + 1;
  key.prompt = services_.composer.versions().tools;
  ModelOutcome outcome =
      co_await model_.ask(conversation_, tools_, std::move(key), ModelStep::Brings::kAnything);
  if (auto* none = std::get_if<NoReply>(&outcome)) {
    detail_ = none->detail;
    fix_ = none->fix;
    add_billed(record_, *none);
    ending = ending_of(none->event);
    co_return ending;
  }
  auto& reply = std::get<ModelReply>(outcome);
  ++record_.state.attempt;
  record::Attempt& made = record_.attempts.emplace_back();
  made.n = record_.state.attempt;
  made.model_seconds = reply.seconds;
  made.charge = reply.charge;
  made.finish_reason = reply.completion.finish_reason;
  made.model_tries = reply.completion.tries;
  made.text = reply.completion.text;
  if (reply.completion.finish == providers::Finish::kCut) {
    made.fail(FailureClass::kProvider, {"broken", std::string(kBrokenReply)});
    ending = ending_of({.kind = Event::Kind::kProviderFailed});
    co_return ending;
  }
  if (reply.completion.tool_calls.empty()) {
    ending = take_answer(reply.completion);
    co_return ending;
  }
  const bool dropped = reply.completion.calls_dropped;
  conversation_.push_back({.role = Role::kAssistant,
                           .text = reply.completion.text,
                           .tool_calls = reply.completion.tool_calls});
  ending = co_await use_tools(std::move(reply.completion.tool_calls), dropped);
  co_return ending;
}

// Half an answer, or none, is told to the model, which has its other steps to do better.
std::optional<Ending> ToolsDriver::take_answer(const providers::Completion& reply) {
  record::Attempt& made = record_.attempts.back();
  auto fault = fault_of_answer(reply);
  if (!fault) {
    made.outcome = record::Outcome::kDone;
    record_.result = record::Result{.kind = record::Result::Kind::kAnswer, .text = made.text};
    return Ending{.reason = Reason::kPassed};
  }
  made.fail(FailureClass::kProvider, *std::move(fault));
  if (reply.finish == providers::Finish::kFiltered) {
    return ending_of({.kind = Event::Kind::kProviderFailed});
  }
  if (!is_blank(reply.text)) {  // some servers refuse empty messages
    conversation_.push_back({.role = Role::kAssistant, .text = reply.text});
  }
  conversation_.push_back({.role = Role::kUser, .text = made.error->detail + "."});
  return std::nullopt;
}

Task<std::optional<Ending>> ToolsDriver::use_tools(std::vector<ToolCall> calls,
                                                   bool more_were_made) {
  std::optional<Ending> ending;
  enter(Phase::kExecute);
  for (const ToolCall& call : calls) {
    record::ToolUse use{.name = call.name, .arguments = call.arguments, .is_error = true};
    if (call.name != "run_code") {
      use.output = "There is no tool of that name; the one tool is run_code.";
    } else {
      RunCodeArguments arguments = parse_run_code(call.arguments, languages_);
      use.output = arguments.error;
      if (services_.redactor.holds_own(arguments.code)) {
        use.output = "It was not run: " + std::string(kOwnSecret) + ".";
      } else if (arguments.error.empty()) {
        ending = co_await run_code(std::move(arguments.language), std::move(arguments.code), use);
      }
    }
    if (more_were_made && &call == &calls.back()) use.output += kTooManyCalls;
    answer(call.id, std::move(use));
    if (ending) break;
  }
  if (!ending) record_.attempts.back().outcome = record::Outcome::kDone;
  co_return ending;
}

Task<std::optional<Ending>> ToolsDriver::run_code(std::string language, std::string code,
                                                  record::ToolUse& use) {
  std::optional<Ending> ending;
  RunStepOutcome outcome = co_await runs_.run(std::move(language), std::move(code));
  record::Attempt& made = record_.attempts.back();
  if (auto* none = std::get_if<NotRun>(&outcome)) {
    made.run_seconds += none->seconds;
    use.output = "The sandbox could not run it:\n" + prompts::wrap_data(none->detail);
    if (none->event.kind != Event::Kind::kSandboxFailed) {
      ending = ending_of(none->event);
      if (none->cut) made.fail(FailureClass::kTimeout, {"timeout", none->detail});
      detail_ = none->cut ? std::string() : none->detail;
      fix_ = none->fix;
    }
    co_return ending;
  }
  auto& ran = std::get<Ran>(outcome);
  made.run_seconds += ran.seconds;
  ran.result.out = services_.redactor.clean(ran.result.out).text();  // it is cut below
  use.is_error = !ran.result.ok();
  use.output = describe_run(ran.result);
  use.run = record::run_of(ran.result, services_.redactor);
  // As with a program of the other mode: the boundary held, and is not tried again.
  if (ran.result.status == "security") {
    ending = Ending{.reason = Reason::kSecurity, .failure = FailureClass::kSecurity};
    made.fail(FailureClass::kSecurity, {"security", "its program made a hostile system call"});
  }
  if (ran.cut_by) {
    ending = Ending{.reason = Reason::kCeiling, .ceiling = ran.cut_by};
    made.fail(FailureClass::kTimeout, {"timeout", "its program was ended with the request's time"});
  }
  // What the last good run left is what the answer can be about.
  if (ran.result.ok() && !ran.result.files.empty()) {
    record_.artifacts = artifacts_of(std::move(ran.result), nullptr);
  }
  co_return ending;
}

void ToolsDriver::answer(const std::string& id, record::ToolUse use) {
  conversation_.push_back(
      {.role = Role::kTool, .text = use.output, .tool_call_id = id, .is_error = use.is_error});
  record_.attempts.back().tools.push_back(std::move(use));
}

std::optional<record::Error> fault_of_answer(const providers::Completion& reply) {
  using providers::Finish;
  if (reply.finish == Finish::kFiltered) {
    return record::Error{"withheld",
                         "the provider withheld the reply (" + reply.finish_reason + ")"};
  }
  if (reply.finish == Finish::kLength) {
    return record::Error{"cut", "That reply was cut off before its end: answer in fewer words"};
  }
  if (is_blank(reply.text)) {
    return record::Error{"empty", "That reply held neither an answer nor a tool call"};
  }
  return std::nullopt;
}

RunCodeArguments parse_run_code(const std::string& arguments,
                                const std::vector<std::string>& languages) {
  using Json = nlohmann::json;
  RunCodeArguments result;
  const Json json = Json::parse(arguments, nullptr, false);
  if (!json.is_object()) {
    result.error = R"(The arguments must be one JSON object: {"code": "…", "language": "python"}.)";
    return result;
  }
  for (const auto& [name, target] :
       {std::pair("code", &result.code), std::pair("language", &result.language)}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) {
      result.error = fmt::format("The argument \"{}\" is missing, or is no string.", name);
      return result;
    }
    *target = found->get<std::string>();
  }
  for (const auto& [name, value] : json.items()) {
    if (name != "code" && name != "language") {
      result.error = "The arguments are \"code\" and \"language\" alone.";
    }
  }
  if (std::find(languages.begin(), languages.end(), result.language) == languages.end()) {
    result.error =
        fmt::format("There is no such language; there are {}.", fmt::join(languages, ", "));
  } else if (result.code.size() > envelope::kMaxCodeBytes) {
    result.error = fmt::format("The program is longer than {} bytes.", envelope::kMaxCodeBytes);
  }
  return result;
}

std::string describe_run(const sandbox::RunResult& run) {
  constexpr std::size_t kPerStream = prompts::kMaxToolOutputBytes / 2;
  std::string text = run.ok() ? "It ended without an error."
                              : fmt::format("It ended with status {} and exit code {}.", run.status,
                                            run.exit_code);
  std::string words;
  for (const sandbox::Note& note : run.notes) {
    if (note.source == "kernel") {
      text += ' ' + note.text;
    } else {
      words += note.text + '\n';
    }
  }
  for (const auto& [name, stream] :
       {std::pair("stdout", &run.out), std::pair("stderr", &run.err)}) {
    if (stream->empty()) continue;
    words += fmt::format("{}:\n{}\n", name, prompts::head_and_tail(*stream, kPerStream));
  }
  for (const sandbox::OutputFile& file : run.files) {
    words += fmt::format("/output/{}: {} bytes\n", file.path, file.size);
  }
  return words.empty() ? text + " It printed nothing." : text + '\n' + prompts::wrap_data(words);
}

}  // namespace agentd::loop
