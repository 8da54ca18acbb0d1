// The record of a request: everything that is told about it, from its submission to its end.
//
// Values, filled by the loop; record_json.h turns them into the JSON that every surface is made of
// (HTTP, events, history, terminal). Not redacted here: that happens in one place, in the JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agentd/envelope/envelope.h"
#include "agentd/loop/state.h"
#include "agentd/record/money.h"
#include "agentd/redact/redactor.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::record {

enum class Mode : std::uint8_t { kCode, kTools };

struct Budget {
  int attempts = 3;  // in kTools: iterations
  std::int64_t tokens = 24'000;
  MicroDollars cost{20'000};
  std::chrono::milliseconds sandbox{60'000};
  std::chrono::milliseconds wall{180'000};
};

struct Spent {
  std::int64_t tokens = 0;
  MicroDollars cost{};
  std::chrono::milliseconds sandbox{0};
  bool estimated = false;  // some figure is what was reserved, as the provider told none
};

// What one model call cost.
struct Charge {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  MicroDollars cost{};
  bool estimated = false;  // the provider told no usage that can be: billed as reserved,
  bool flagged = false;    // and what it told was out of bounds
};

// A run as it is told: its result without the contents of files, and with 64 KiB of stdout at most,
// head and tail.
struct Run {
  std::string id{};
  std::string status{};
  int exit_code = 0;
  std::optional<int> signal{};
  double duration_seconds = 0;
  std::string out{};
  std::uint64_t out_dropped = 0;
  std::string err{};
  std::uint64_t err_dropped = 0;
  std::vector<std::string> limits_hit{};
  std::vector<sandbox::Note> notes{};
  std::vector<sandbox::OutputFile> files{};  // without content
  std::vector<sandbox::Refused> refused{};
};
// Cleans stdout before it cuts it.
[[nodiscard]] Run run_of(const sandbox::RunResult& result, const redact::Redactor& redactor);

struct Error {
  std::string code;
  std::string detail;
};

struct ToolUse {
  std::string name{};
  std::string arguments{};  // as the model wrote them
  bool is_error = false;
  std::string output{};  // as the model was told
  std::optional<Run> run{};
};

// What became of an attempt. Nothing counts as passed by default.
enum class Outcome : std::uint8_t {
  kRunning,    // under way
  kPassed,     // its program ran and was judged so
  kDone,       // kTools: its tools were used, or it was the answer
  kFailed,     // `failure` says how
  kCancelled,  // by the client, before it was judged
  kNotRun,     // the request ended before its program ran
};
[[nodiscard]] std::string_view to_string(Outcome outcome);  // "not_run"

// One reply of the model and what came of it; or a call without one that was billed.
struct Attempt {
  int n = 1;
  Outcome outcome = Outcome::kRunning;
  std::optional<loop::FailureClass> failure{};  // with kFailed
  std::optional<Error> error{};
  double model_seconds = 0;
  double run_seconds = 0;
  Charge charge{};
  std::string finish_reason{};
  int model_tries = 1;
  std::string code{};
  std::optional<Run> run{};
  std::string text{};            // kTools: what the model said
  std::vector<ToolUse> tools{};  // kTools

  void fail(loop::FailureClass how, Error why);
};

struct Artifact {
  std::string name;  // a path below /output, or one of ours
  std::uint64_t size = 0;
  std::string sha256{};
  std::string media_type{};
  bool redacted = false;
  std::string content{};  // until it is stored
};

struct Result {
  enum class Kind : std::uint8_t { kEnvelope, kRaw, kAnswer };
  Kind kind = Kind::kEnvelope;
  envelope::Envelope envelope{};  // kEnvelope
  std::string text{};             // kRaw: stdout; kAnswer: the model's
  std::string banner{};           // kRaw
};

struct RequestFile {
  std::string name;
  std::uint64_t size = 0;
  std::string sha256{};
};

struct Record {
  std::string id{};
  Mode mode = Mode::kCode;
  std::string text{};
  std::string language{};  // kCode
  std::string label{};
  std::vector<RequestFile> files{};

  std::string provider_kind{};
  std::string model{};
  bool replayed = false;
  std::vector<std::pair<std::string, std::string>> prompts{};  // {"codegen", "codegen.v1.python"}

  bool queued = true;
  loop::State state{};
  std::string reason_text{};  // at the end
  std::string reason_fix{};   // where the text ends with one

  std::vector<Attempt> attempts{};
  std::optional<Result> result{};
  std::vector<Artifact> artifacts{};

  Budget budget{};
  Spent spent{};
  std::int64_t created_ms = 0;  // since the epoch
  std::int64_t ended_ms = 0;    // 0: not yet
  double wall_seconds = 0;      // since it was submitted
  double work_seconds = 0;      // without the waiting for a place: what budget.wall bounds
};

// "queued", a phase, or how it ended: "succeeded", "gave_up", "cancelled", "failed".
[[nodiscard]] std::string_view state_name(const Record& record);
[[nodiscard]] bool has_ended(const Record& record);

// At the end of a request: an attempt that is still under way was cancelled, or not run.
void end_attempts(Record& record);
// The failure's class, or the outcome: "runtime", "passed", "not_run". For logs and metrics.
[[nodiscard]] std::string_view class_or_outcome(const Attempt& attempt);

// One line for people: "Attempt 2: executing…", "Gave up after 3 attempts: …".
[[nodiscard]] std::string status_line(const Record& record);

}  // namespace agentd::record
