#include "agentd/loop/driver.h"

#include <fmt/core.h>

#include <utility>

#include "agentd/loop/artifacts.h"
#include "agentd/loop/ending_text.h"
#include "agentd/prompts/data_wrapper.h"
#include "runtime/base/log.h"

namespace agentd::loop {

using providers::Finish;
using sbx::async::Task;

namespace {

constexpr std::size_t kMaxReplyShownBack = 12'000;

}  // namespace

Driver::Driver(const Services& services, const Submission& submission, record::Record& record,
               const sbx::async::Cancellation& stop, OnChange on_change)
    : services_(services),
      submission_(submission),
      record_(record),
      stop_(stop),
      on_change_(std::move(on_change)),
      spending_(services, record),
      model_(services, spending_, stop),
      runs_(services, submission, spending_, stop) {
  // The record's language was checked when it was submitted.
  (void)envelope::language_from(record.language, language_);
}

Task<void> Driver::run() {
  on_change_(record_);
  while (record_.state.phase != Phase::kDone) {
    const Event event = co_await step();
    const Budget budget{.max_attempts = record_.budget.attempts, .spent = spending_.spent()};
    record_.state = next(record_.state, event, budget);
    if (record_.state.phase == Phase::kDone && record_.reason_text.empty()) {
      set_reason(record_, detail_, fix_);
    }
    if (record_.state.phase == Phase::kDone) {
      record::end_attempts(record_);
      spending_.release_ahead();
    }
    on_change_(record_);
  }
}

Task<Event> Driver::step() {
  Event event;
  if (stop_.cancelled() && record_.state.phase != Phase::kGiveUp) {
    event.kind = Event::Kind::kCancelled;
    co_return event;
  }
  switch (record_.state.phase) {
    case Phase::kGenerate:
    case Phase::kRepair:
      event = co_await ask_model();
      break;
    case Phase::kExecute:
      event = co_await execute();
      break;
    case Phase::kEvaluate:
      event = evaluate();
      break;
    case Phase::kGiveUp:
    case Phase::kDone:
      event = report();
      break;
  }
  co_return event;
}

// Nothing is asked of a model before the sandbox is known to be there, now.
Task<std::optional<Event>> Driver::learn_sandbox() {
  std::optional<Event> problem;
  LearnOutcome outcome = co_await runs_.learn(record_.files);
  if (auto* none = std::get_if<NotRun>(&outcome)) {
    detail_ = none->detail;
    fix_ = none->fix;
    problem = none->event;
  } else {
    info_ = std::get<sandbox::SharedInfo>(std::move(outcome));
  }
  co_return problem;
}

// Each repair sees the request, the last reply and what was wrong with it: earlier ones would cost
// tokens and teach little.
std::vector<providers::Message> Driver::messages() const {
  auto messages =
      services_.composer.codegen(language_, record_.text, submission_.files_description, *info_);
  if (!repair_) return messages;
  messages.push_back({.role = providers::Role::kAssistant,
                      .text = prompts::head_and_tail(last_reply_, kMaxReplyShownBack)});
  messages.push_back(services_.composer.repair(language_, *repair_));
  return messages;
}

Task<Event> Driver::ask_model() {
  const auto problem = co_await learn_sandbox();
  if (problem) co_return *problem;
  const bool repairing = record_.state.phase == Phase::kRepair;
  providers::RecordingKey key;
  key.request_sha256 = submission_.request_sha256;
  key.label = record_.label;
  key.call = record_.state.attempt + 1;
  key.prompt =
      repairing ? services_.composer.versions().repair : services_.composer.codegen_name(language_);
  std::vector<providers::Message> conversation = messages();
  std::vector<providers::Tool> no_tools;
  ModelOutcome outcome = co_await model_.ask(std::move(conversation), std::move(no_tools),
                                             std::move(key), ModelStep::Brings::kRun);
  if (auto* none = std::get_if<NoReply>(&outcome)) {
    detail_ = none->detail;
    fix_ = none->fix;
    add_billed(record_, *none);
    co_return none->event;
  }
  co_return take_reply(std::move(std::get<ModelReply>(outcome)));
}

Event Driver::take_reply(ModelReply reply) {
  record::Attempt& made = record_.attempts.emplace_back();
  made.n = record_.state.attempt + 1;
  made.model_seconds = reply.seconds;
  made.charge = reply.charge;
  made.finish_reason = reply.completion.finish_reason;
  made.model_tries = reply.completion.tries;
  last_reply_ = std::move(reply.completion.text);
  detail_.clear();  // of a first try at an earlier run
  const Finish finish = reply.completion.finish;
  if (finish == Finish::kFiltered) {
    made.fail(FailureClass::kProvider, {"withheld", "the provider withheld the reply (" +
                                                        reply.completion.finish_reason + ")"});
    return {.kind = Event::Kind::kProviderFailed};
  }
  const bool cut = finish == Finish::kLength || finish == Finish::kCut;
  auto extracted = envelope::extract_code(last_reply_, language_, cut);
  if (auto* none = std::get_if<envelope::NoCode>(&extracted)) {
    if (finish == Finish::kCut) {  // not the model's doing: it has nothing to mend
      made.fail(FailureClass::kProvider, {"broken", std::string(kBrokenReply)});
      return {.kind = Event::Kind::kProviderFailed};
    }
    made.fail(FailureClass::kProvider, {none->code, none->detail});
    repair_ = prompts::Repair{.kind = prompts::RepairKind::kNoCode, .problem = none->detail + "."};
    return {.kind = Event::Kind::kReplyRejected};
  }
  auto& block = std::get<envelope::CodeBlock>(extracted);
  if (block.prose_bytes > 0) {
    sbx::log::debug("prose around a program was ignored",
                    {{"request", record_.id}, {"bytes", std::uint64_t{block.prose_bytes}}});
  }
  // SECURITY: a key of ours gets into no sandbox, not even from the one who was given it.
  if (services_.redactor.holds_own(block.code)) {
    made.fail(FailureClass::kProvider, {"own_secret", std::string(kOwnSecret)});
    repair_ = prompts::Repair{.kind = prompts::RepairKind::kNoCode,
                              .problem = std::string(kOwnSecret) + "."};
    return {.kind = Event::Kind::kReplyRejected};
  }
  made.code = std::move(block.code);
  return {.kind = Event::Kind::kReplyAccepted};
}

Task<Event> Driver::execute() {
  RunStepOutcome outcome = co_await runs_.run(std::string(to_string(language_)), attempt().code);
  if (auto* none = std::get_if<NotRun>(&outcome)) {
    attempt().run_seconds += none->seconds;
    // What a sandbox that failed took leaves no time to try it again.
    if (none->event.kind == Event::Kind::kCeilingReached && record_.state.sandbox_retried &&
        attempt().failure == FailureClass::kSandbox) {
      none->event = {.kind = Event::Kind::kSandboxFailed};
      none->detail = attempt().error->detail;
      none->cut = false;
    }
    if (none->event.kind == Event::Kind::kSandboxFailed) {
      attempt().fail(FailureClass::kSandbox, {"sandbox", none->detail});
    } else if (none->cut) {
      attempt().fail(FailureClass::kTimeout, {"timeout", none->detail});
    }
    detail_ = none->cut ? std::string() : none->detail;
    if (!none->fix.empty()) fix_ = none->fix;
    co_return none->event;
  }
  ran_ = std::move(std::get<Ran>(outcome));
  attempt().outcome = record::Outcome::kRunning;
  attempt().failure.reset();  // of a first try that the sandbox failed
  attempt().error.reset();
  detail_.clear();
  attempt().run_seconds += ran_->seconds;
  attempt().run = record::run_of(ran_->result, services_.redactor);
  co_return Event{.kind = Event::Kind::kRunEnded};
}

Event Driver::evaluate() {
  const sandbox::LanguageInfo* language = info_->language(to_string(language_));
  Judgement judgement =
      judge(ran_->result, language == nullptr ? std::string() : language->syntax_error_pattern,
            services_.redactor);
  keep_good_run();
  if (!judgement.failure) {
    attempt().outcome = record::Outcome::kPassed;
    record_.result = record::Result{.envelope = std::move(judgement.envelope)};
    record_.artifacts = artifacts_of(std::move(*last_ok_), &record_.result->envelope);
    return {.kind = Event::Kind::kPassed};
  }
  attempt().fail(*judgement.failure, {std::move(judgement.code), std::move(judgement.detail)});
  repair_ = std::move(judgement.repair);
  // It was not the program's own time limit that ended it, but what the budget had left.
  if (ran_->cut_by) return {.kind = Event::Kind::kCeilingReached, .ceiling = *ran_->cut_by};
  return {.kind = Event::Kind::kFailed, .failure = *judgement.failure};
}

void Driver::keep_good_run() {
  if (ran_->result.ok()) last_ok_ = std::move(ran_->result);
}

// A program that ran but told its result in no form that we know: better raw than nothing.
Event Driver::report() {
  if (last_ok_) {
    record::Result raw{.kind = record::Result::Kind::kRaw};
    raw.text = last_ok_->out;
    if (last_ok_->out_dropped > 0) {
      raw.text.insert(last_ok_->out_cut,
                      fmt::format("\n[… {} bytes were not kept …]\n", last_ok_->out_dropped));
    }
    raw.banner =
        "No attempt gave a result in the agreed form. This is what the last program that "
        "ended without an error printed.";
    record_.result = std::move(raw);
    record_.artifacts = artifacts_of(std::move(*last_ok_), nullptr);
  }
  return {.kind = Event::Kind::kReported};
}

}  // namespace agentd::loop
