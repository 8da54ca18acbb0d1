#include "agentd/record/record.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/base/utf8.h"

namespace agentd::record {

using loop::Phase;
using loop::Reason;

namespace {

// A run may keep more, for its last line.
constexpr std::size_t kHalfStream = 32U << 10;

// Takes the middle out of what is long. How many bytes those were.
std::uint64_t drop_middle(std::string& text, const redact::Redactor& redactor) {
  if (text.size() <= 2 * kHalfStream) return 0;
  text = redactor.clean(text).text();  // a key that is cut is found no more
  if (text.size() <= 2 * kHalfStream) return 0;
  const std::size_t begin = sbx::utf8_boundary_before(text, kHalfStream);
  const std::size_t end = sbx::utf8_boundary_behind(text, text.size() - kHalfStream);
  text.erase(begin, end - begin);
  return end - begin;
}

}  // namespace

Run run_of(const sandbox::RunResult& result, const redact::Redactor& redactor) {
  Run run{.id = result.id,
          .status = result.status,
          .exit_code = result.exit_code,
          .signal = result.signal,
          .duration_seconds = result.duration_seconds,
          .out = result.out,
          .out_dropped = result.out_dropped,
          .err = result.err,
          .err_dropped = result.err_dropped,
          .limits_hit = result.limits_hit,
          .notes = result.notes,
          .refused = result.refused};
  run.out_dropped += drop_middle(run.out, redactor);
  for (const sandbox::OutputFile& file : result.files) {
    run.files.push_back({.path = file.path,
                         .size = file.size,
                         .sha256 = file.sha256,
                         .media_type = file.media_type});
  }
  return run;
}

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"running", "passed",    "done",
                                         "failed",  "cancelled", "not_run"};
  return kNames[static_cast<std::size_t>(outcome)];
}

void Attempt::fail(loop::FailureClass how, Error why) {
  outcome = Outcome::kFailed;
  failure = how;
  error = std::move(why);
}

bool has_ended(const Record& record) {
  return record.state.phase == Phase::kDone;
}

void end_attempts(Record& record) {
  const bool cancelled = record.state.ending.reason == Reason::kCancelled;
  for (Attempt& attempt : record.attempts) {
    if (attempt.outcome != Outcome::kRunning) continue;
    attempt.outcome = cancelled ? Outcome::kCancelled : Outcome::kNotRun;
  }
}

std::string_view class_or_outcome(const Attempt& attempt) {
  return attempt.failure ? to_string(*attempt.failure) : to_string(attempt.outcome);
}

std::string_view state_name(const Record& record) {
  if (record.queued) return "queued";
  if (!has_ended(record)) return to_string(record.state.phase);
  const Reason reason = record.state.ending.reason;
  if (reason == Reason::kPassed) return "succeeded";
  if (reason == Reason::kCancelled) return "cancelled";
  return is_ours(reason) ? "failed" : "gave_up";
}

namespace {

std::string attempts_text(std::size_t attempts) {
  return attempts == 1 ? "1 attempt" : fmt::format("{} attempts", attempts);
}

std::string ending_line(const Record& record) {
  const std::string attempts = attempts_text(record.attempts.size());
  const std::string_view state = state_name(record);
  if (state == "succeeded") return fmt::format("Succeeded after {}.", attempts);
  if (state == "cancelled") return "Cancelled.";
  const std::string_view verb = state == "failed" ? "Failed" : "Gave up";
  return fmt::format("{} after {}: {}", verb, attempts, record.reason_text);
}

}  // namespace

std::string status_line(const Record& record) {
  if (record.queued) return "Waiting for a free place…";
  if (has_ended(record)) return ending_line(record);
  const bool tools = record.mode == Mode::kTools;
  const std::string_view unit = tools ? "Step" : "Attempt";
  switch (record.state.phase) {
    case Phase::kGenerate:
    case Phase::kRepair: {
      const std::string_view verb = tools                                    ? "thinking"
                                    : record.state.phase == Phase::kGenerate ? "generating"
                                                                             : "repairing";
      return fmt::format("{} {}: {}…", unit, record.state.attempt + 1, verb);
    }
    case Phase::kExecute:
      return fmt::format("{} {}: executing…", unit, record.state.attempt);
    case Phase::kEvaluate:
      return fmt::format("{} {}: checking…", unit, record.state.attempt);
    case Phase::kGiveUp:
      return "Giving up…";
    case Phase::kDone:
      break;
  }
  return {};
}

}  // namespace agentd::record
