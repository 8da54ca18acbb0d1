// sbx-run FILE, -c, -, and --: one run, its output live, its ending in words.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/deadline.h"
#include "runtime/cli/cancel.h"
#include "runtime/cli/live_output.h"
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/collect/make_outcome.h"
#include "runtime/collect/output_directory.h"
#include "runtime/policy/profile.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

using collect::Outcome;

// Everything that can be refused before a process is made.
struct Prepared {
  SandboxOptions options;
  plan::Request request;
  StandardInput input;
  std::optional<collect::OutputDirectory> output;
  std::optional<std::string> profile_text;  // --learn: a FILE may change meanwhile
};

Result<Prepared> prepare(const Arguments& arguments) {
  Prepared prepared;
  SBX_ASSIGN(prepared.options.config, policy::load_runtime_config());
  if (arguments.learn) {
    SBX_ASSIGN(prepared.profile_text, policy::profile_source(arguments.profile));
  }
  SBX_ASSIGN(prepared.options.policy, make_policy(arguments, prepared.profile_text));
  for (const auto& typed : arguments.limits) prepared.options.asked_limits.push_back(typed.first);
  prepared.options.rootfs = arguments.rootfs;
  prepared.options.single_run = true;
  if (arguments.output_dir) {
    SBX_ASSIGN(prepared.output, collect::OutputDirectory::open(*arguments.output_dir));
  }
  SBX_ASSIGN(prepared.input, open_standard_input(arguments));
  SBX_ASSIGN(prepared.request, make_request(arguments, prepared.options.policy.limits));
  return prepared;
}

// Where what comes out goes, and what of it did not arrive.
struct Streams {
  LiveOutput out{STDOUT_FILENO};
  LiveOutput err{STDERR_FILENO};
  bool given_up = false;  // the run was cancelled because of an error
  bool unsaved = false;   // a file that was to come out could not be written; `refused` says why

  [[nodiscard]] int error() const { return out.error() != 0 ? out.error() : err.error(); }
};

RunHooks make_hooks(const Arguments& arguments, const Prepared& prepared, Streams& streams) {
  RunHooks hooks;
  hooks.stdin_fd = prepared.input.fd;
  if (!arguments.json) {
    hooks.on_stdout = [&streams](std::string_view bytes) { streams.out.append(bytes); };
    hooks.on_stderr = [&streams](std::string_view bytes) { streams.err.append(bytes); };
  }
  // Without a place to put them, files are listed, so that what was not saved can be named.
  const bool wanted = arguments.json || prepared.output;
  hooks.collect = wanted ? collect::CollectMode::kContent : collect::CollectMode::kList;
  if (prepared.output) {
    hooks.sink = [&streams, save = prepared.output->sink()](collect::CollectedFile& file, int fd) {
      Result<void> saved = save(file, fd);
      streams.unsaved = streams.unsaved || !saved;
      return saved;
    };
  }
  return hooks;
}

// Waits for the run, the caller's signals and the readers of our output, and serves what is ready.
void step(Run& run, CancelSignals& signals, Streams& streams) {
  std::vector<pollfd> all = run.interest();
  const std::size_t own = all.size();
  all.push_back({signals.fd(), POLLIN, 0});
  for (const LiveOutput* const stream : {&streams.out, &streams.err}) {
    // Without anything to write, an error still tells that the reader has left.
    const bool failed = stream->error() != 0;
    all.push_back(
        {failed ? -1 : stream->fd(), static_cast<short>(stream->pending() ? POLLOUT : 0), 0});
  }
  if (::poll(all.data(), all.size(), poll_timeout(run.next_deadline())) < 0) {
    // EINTR, ENOMEM: nothing is known to be ready; the run still sees its deadlines.
    for (pollfd& entry : all) entry.revents = 0;
  }
  if (all[own].revents != 0 && signals.take()) run.cancel();
  streams.out.serve(all[own + 1].revents);
  streams.err.serve(all[own + 2].revents);
  if (streams.error() != 0 && !std::exchange(streams.given_up, true)) run.cancel();
  all.resize(own);
  run.step(all);
}

// Runs it, and has everything of it gone when this returns. Signals are ours only in here.
Result<Outcome> run_to_end(Prepared& prepared, const RunHooks& hooks, Streams& streams) {
  SBX_ASSIGN(CancelSignals signals, CancelSignals::block());
  SBX_ASSIGN(Sandbox sandbox, Sandbox::open(std::move(prepared.options)));
  SBX_ASSIGN(std::unique_ptr<Run> run, sandbox.start(prepared.request, hooks));
  while (!run->done()) step(*run, signals, streams);
  Outcome outcome = run->take_outcome();
  run.reset();
  while (signals.take()) {
  }  // a signal that has cancelled the run must not end us too
  return outcome;
}

// What the live stream did not carry: nothing, or the line about the cut and the end.
void finish_stream(LiveOutput& stream, std::string_view name, std::string_view bytes,
                   std::uint64_t dropped, std::size_t head, std::uint64_t limit) {
  const std::size_t end_of_head = dropped == 0 ? bytes.size() : std::min(head, bytes.size());
  const auto live =
      static_cast<std::size_t>(std::min<std::uint64_t>(stream.appended(), end_of_head));
  stream.append(bytes.substr(live, end_of_head - live));
  if (!stream.flush() || dropped == 0) return;
  print_lines({cut_line(name, dropped, limit)}, !stream.at_line_start());
  stream.append(bytes.substr(end_of_head));
  (void)stream.flush();  // its error() is looked at once, at the end
}

void print_human(const Arguments& arguments, const policy::Policy& policy, const Outcome& outcome,
                 Streams& streams) {
  finish_stream(streams.out, "stdout", outcome.stdout_bytes, outcome.stdout_dropped,
                outcome.stdout_head, outcome.limits.stdout_bytes);
  finish_stream(streams.err, "stderr", outcome.stderr_bytes, outcome.stderr_dropped,
                outcome.stderr_head, outcome.limits.stderr_bytes);
  Lines lines = loosened_lines(policy);
  for (std::string& line : lowered_lines(policy.limits, outcome.limits)) {
    lines.push_back(std::move(line));
  }
  for (std::string& line : outcome_lines(outcome, arguments.output_dir.has_value())) {
    lines.push_back(std::move(line));
  }
  print_lines(lines, !streams.err.at_line_start());
}

// A lost result must not look like a delivered one. A reader that left knows that it did.
int exit_code(const Outcome& outcome, int write_error, bool unsaved = false) {
  const int own = process_exit_code(outcome);
  const int code = own == 0 && unsaved ? kExitSandboxError : own;
  if (write_error == 0 || write_error == EPIPE) return code;
  errno = write_error;
  print_lines(error_lines(sys_error("write", "the output could not be written")));
  // "Cancelled" would only repeat that we gave up because of it.
  return code == 0 || outcome.status == collect::Status::kCancelled ? kExitSandboxError : code;
}

int write_json(const Outcome& outcome) {
  const Result<void> written = write_out(STDOUT_FILENO, to_json(outcome) + "\n");
  return written ? 0 : written.error().sys_errno;
}

// On stderr, since stdout is the program's; the profile without our prefix, to be copied.
void print_learned(const Outcome& outcome, std::string_view profile_text) {
  const std::string learned = learn_profile(outcome, profile_text);
  print_lines(learn_lines(outcome, learned));
  (void)write_out(STDERR_FILENO, learned);  // as print_lines
}

int refuse(const Error& error, const Arguments& arguments, const policy::Policy* policy) {
  print_lines(error_lines(error));
  if (error.code == ErrorCode::kInvalid) return kExitUsage;
  if (!arguments.json) return kExitSandboxError;
  collect::OutcomeContext context;
  if (policy != nullptr) {
    context.limits = policy->limits;
    context.profile = policy->profile;
  }
  const Outcome outcome = collect::make_refusal(error, std::move(context));
  return exit_code(outcome, write_json(outcome));
}

}  // namespace

int run(const Arguments& arguments) {
  Result<Prepared> prepared = prepare(arguments);
  if (!prepared) return refuse(prepared.error(), arguments, nullptr);
  const policy::Policy policy = prepared->options.policy;  // options are given away
  Streams streams;
  const RunHooks hooks = make_hooks(arguments, *prepared, streams);
  const Result<Outcome> outcome = run_to_end(*prepared, hooks, streams);
  if (!outcome) return refuse(outcome.error(), arguments, &policy);

  int write_error = 0;
  if (arguments.json) {
    write_error = write_json(*outcome);
  } else {
    print_human(arguments, policy, *outcome, streams);
    write_error = streams.error();
  }
  if (prepared->profile_text) print_learned(*outcome, *prepared->profile_text);
  return exit_code(*outcome, write_error, streams.unsaved);
}

}  // namespace sbx::cli
