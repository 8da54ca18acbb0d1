#include "runtime/daemon/run_service.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/scope_exit.h"
#include "runtime/collect/make_outcome.h"
#include "runtime/collect/verdict.h"
#include "runtime/daemon/audit_event.h"
#include "runtime/daemon/config_check.h"
#include "runtime/daemon/event_stream.h"
#include "runtime/daemon/json_parts.h"
#include "runtime/daemon/retry_after.h"
#include "runtime/daemon/run_driver.h"
#include "runtime/spawn/spawner.h"

namespace sbx::daemon {
namespace {

using async::Task;
using collect::Outcome;
using http::Problem;
using Clock = std::chrono::steady_clock;
using OptionalProblem = std::optional<Problem>;

// Texts above it are parsed on the pool: milliseconds that others need not wait.
constexpr std::size_t kMuch = 256 * 1024;

// How far behind a client may be with his answer when others wait for the room that it takes, and
// how often those look.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kLookPeriod{1};

Problem problem_of(const Error& error) {
  if (error.code == ErrorCode::kInvalid) return invalid_request(error);
  const bool host = error.code == ErrorCode::kHost;
  return {.status = 503,
          .code = host ? "host_lacks" : kSandboxUnavailable,
          .detail = to_string(error),
          .fix = fix_for_clients(fix_by_config(error.fix)),
          .retry_after = kRetrySoon};
}

std::string json_type(bool stream) {
  return stream ? "application/x-ndjson" : "application/json";
}

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

void log_run(const Outcome& outcome, const AuditSubject& subject) {
  log::info("run ended",
            {{"run", outcome.id},
             {"uid", subject.peer.uid ? std::int64_t{*subject.peer.uid} : std::int64_t{-1}},
             {"session", subject.session},
             {"status", status_name(outcome.status)},
             {"exit_code", std::int64_t{outcome.exit_code}},
             {"seconds", outcome.duration_seconds}});
  if (!outcome.error) return;
  log::error("sandbox error", {{"run", outcome.id},
                               {"step", outcome.error->step},
                               {"errno", std::int64_t{outcome.error->sys_errno}},
                               {"detail", outcome.error->detail}});
}

}  // namespace

// Lives in the frame of serve(), and outlives everything that points into it.
struct RunService::Live {
  Live(RunService& service, RunRequest parsed, std::optional<SessionRun> of_session, bool as_stream,
       http::Request& from, http::Responder& to)
      : run(std::move(parsed)),
        session(std::move(of_session)),
        stream(as_stream),
        request(from),
        responder(to),
        cancel{from.gone, &service.stopping_, session ? session->deleted : from.gone},
        events([this](std::string_view lines) { return responder.try_write(lines); }) {
    subject.peer = from.peer;
    subject.session = session ? session->id : std::string();
    subject.program_sha256 = run.program_sha256;
    subject.inputs_sha256 = run.inputs_sha256;
    subject.inputs = run.request.files.size();
  }

  [[nodiscard]] RunHooks hooks() {
    RunHooks made;
    made.collect = run.collect;
    if (run.collect == collect::CollectMode::kContent) made.sink = files.sink();
    if (session) made.workspace = session->workspace;
    if (!stream) return made;
    made.on_stdout = [this](std::string_view bytes) {
      events.live(EventStream::Stream::kStdout, bytes);
    };
    made.on_stderr = [this](std::string_view bytes) {
      events.live(EventStream::Stream::kStderr, bytes);
    };
    return made;
  }

  RunRequest run;
  std::optional<SessionRun> session;
  bool stream;
  http::Request& request;
  http::Responder& responder;
  async::Cancellation cancel;
  AuditSubject subject;
  std::unique_ptr<Admission::Ticket> ticket;
  AuditLog::Room audit_room;  // until its line is written
  double queue_seconds = 0;
  std::vector<policy::LayerReport> layers;
  std::string id;  // once it has started
  KeptFiles files;
  EventStream events;
  std::unique_ptr<Run> sandboxed;
  Outcome outcome;
};

// In runs_ from start to end, so that DELETE finds it.
struct RunService::Registry {
  Registry(RunService& of, Live& live) : service(of) {
    const Entry entry{live.request.peer.uid, &live.cancel};
    place = service.runs_.emplace(live.id, entry).first;
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() {
    service.runs_.erase(place);
    service.left_.notify_all();
  }
  RunService& service;
  decltype(RunService::runs_)::iterator place;
};

void RunService::close(std::chrono::seconds drain_time) {
  drained_at_ = Clock::now() + drain_time;
  closing_.cancel();
}

Task<async::Wake> RunService::idle(async::Deadline deadline,
                                   const async::Cancellation* cancellation) {
  async::Wake wake = async::Wake::kReady;
  while (serving_ > 0 && wake == async::Wake::kReady) {
    wake = co_await left_.wait(deadline, cancellation);
  }
  co_return wake;
}

Task<async::Wake> RunService::runs_over(async::Deadline deadline) {
  async::Wake wake = async::Wake::kReady;
  while (!runs_.empty() && wake == async::Wake::kReady) wake = co_await left_.wait(deadline);
  co_return wake;
}

OptionalProblem RunService::refuse_now() const {
  if (closed()) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(drained_at_ - Clock::now());
    return Problem{.status = 503,
                   .code = http::problem_code::kShuttingDown,
                   .detail = "sbxd is shutting down, and takes no new run.",
                   .retry_after = std::max(left, kRetrySoon)};
  }
  return parts_.readiness.problem();
}

Problem RunService::no_start(const Error& error) const {
  Problem problem = problem_of(error);
  const bool no_image = error.code == ErrorCode::kHost && parts_.readiness.image_problem();
  if (no_image) problem.retry_after = kRetryLater;
  return problem;
}

OptionalProblem RunService::health() const {
  if (auto refused = refuse_now()) return refused;
  return parts_.readiness.image_problem();
}

Problem RunService::too_many(const Refusal& refusal) {
  const std::string budget(budget_name(refusal.budget));
  parts_.metrics.count_refused(budget);
  return {.status = 429,
          .code = "too_many_requests",
          .detail = fmt::format("There is no room: {} of sbxd's configuration is used up.", budget),
          .retry_after = refusal.retry_after,
          .more = {{"budget", budget}}};
}

Task<void> RunService::run(http::Request& request, http::Responder& responder) {
  auto parsed = co_await parse(std::move(request.body), RunPlace::kAlone);
  if (const auto* problem = std::get_if<Problem>(&parsed)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  co_await serve(std::get<RunRequest>(std::move(parsed)), std::nullopt, request, responder);
}

Task<OrProblem<RunRequest>> RunService::parse(std::string body, RunPlace place) {
  if (body.size() < kMuch) co_return parse_run_request(body, parts_.rules, place);
  auto job = [text = std::move(body), place, &rules = parts_.rules] {
    return parse_run_request(text, rules, place);
  };
  auto parsed = co_await parts_.pool.run(job);
  co_return std::move(parsed);
}

Task<void> RunService::serve(RunRequest run, std::optional<SessionRun> session,
                             http::Request& request, http::Responder& responder) {
  OptionalProblem problem;
  const auto stream = wants_stream(request.target.query);
  if (const auto* wrong = std::get_if<Problem>(&stream)) {
    co_await responder.send(to_response(*wrong));
    co_return;
  }
  ++serving_;
  const ScopeExit leave([this] {
    --serving_;
    left_.notify_all();
  });
  Live live(*this, std::move(run), std::move(session), std::get<bool>(stream), request, responder);
  problem = co_await admit(live);
  if (!problem && live.cancel.cancelled()) co_return;  // nobody waits for an answer
  if (!problem) problem = co_await start(live);
  if (problem) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  co_await finish(live);
  co_await answer(live);
}

// Returns with an admitted ticket, a problem, or (the client left) with a raised cancellation.
Task<OptionalProblem> RunService::admit(Live& live) {
  if (auto refused = refuse_now()) co_return refused;
  auto layers = parts_.sandbox.check(live.run.policy, live.run.request);
  if (!layers) co_return no_start(layers.error());
  live.layers = *std::move(layers);

  async::Event turn(parts_.loop);
  const auto asked = Clock::now();
  const policy::Limits& limits = live.run.policy.limits;
  auto entered = parts_.admission.enter(live.request.peer.uid.value_or(static_cast<uid_t>(-1)),
                                        {limits.memory, limits.stdout_bytes + limits.stderr_bytes},
                                        [&] { turn.notify_all(); });
  if (const auto* refusal = std::get_if<Refusal>(&entered)) co_return too_many(*refusal);
  auto ticket = std::get<std::unique_ptr<Admission::Ticket>>(std::move(entered));
  const async::Cancellation waiting{&live.cancel, &closing_};
  while (!ticket->admitted()) {
    const auto late = asked + parts_.queue_time;
    const async::Wake wake =
        co_await turn.wait(std::min(late, Clock::now() + kLookPeriod), &waiting);
    if (ticket->admitted()) break;
    if (wake == async::Wake::kCancelled) co_return refuse_now();
    if (auto refused = refuse_now()) co_return refused;  // known since it began to wait
    const Refusal refusal = parts_.admission.refusal(*ticket);
    if (Clock::now() >= late) co_return too_many(refusal);
    leave_slow_readers(refusal, live);
  }
  live.queue_seconds = seconds_since(asked);
  live.ticket = std::move(ticket);
  co_return std::nullopt;
}

// Runs need not wait as long as the pace lets somebody not read: a user's own answers give way to
// his runs, and everybody's where all room is used up. Only those that hold what is lacking.
void RunService::leave_slow_readers(const Refusal& lacking, const Live& waiting) {
  if (lacking.budget == Budget::kRunning) return;
  for (const Live* const each : answering_) {
    if (!each->ticket->holds(lacking.budget)) continue;
    const bool in_the_way = !lacking.own || each->request.peer.uid == waiting.request.peer.uid;
    if (!in_the_way || each->responder.behind() < kPatience) continue;
    log::info("an answer that is not read gives way", {{"run", each->id}});
    each->responder.leave();
  }
}

Task<OptionalProblem> RunService::start(Live& live) {
  if (auto refused = refuse_now()) co_return refused;
  live.audit_room = parts_.audit.take_room();
  auto started = parts_.sandbox.start(live.run.policy, std::move(live.run.request), live.hooks());
  if (!started) {
    log::error("a run could not start", {{"error", to_string(started.error())}});
    if (spawn::is_spawner_silent(started.error())) parts_.readiness.fall_silent();
    co_return no_start(started.error());
  }
  live.sandboxed = *std::move(started);
  live.id = live.sandboxed->id();
  http::Response head;
  head.headers.set("Sbx-Run-Id", live.id);
  head.content_type = json_type(live.stream);
  live.responder.begin(std::move(head));
  if (!live.stream) co_return std::nullopt;
  std::string first =
      live.events.started(live.id, limits_json(live.run.policy.limits), layers_json(live.layers));
  // A client that is gone is noticed while the run goes on, and cancels it.
  (void)live.responder.try_write(first);
  co_return std::nullopt;
}

Task<void> RunService::finish(Live& live) {
  {
    const Registry registry(*this, live);
    auto driven = co_await drive(parts_.loop, *live.sandboxed, live.cancel);
    if (driven) {
      live.outcome = live.sandboxed->take_outcome();
      const auto& error = live.outcome.error;
      if (error && spawn::is_spawner_silent(error->step, error->sys_errno)) {
        parts_.readiness.fall_silent();
      }
    } else {
      collect::OutcomeContext context;
      context.id = live.id;
      context.limits = live.run.policy.limits;
      context.profile = live.run.policy.profile;
      live.outcome = collect::make_refusal(driven.error(), std::move(context));
    }
  }
  live.sandboxed.reset();
  if (live.files.shortage() && !live.outcome.error) {
    live.outcome.status = collect::Status::kSandboxError;
    live.outcome.error = collect::error_info(*live.files.shortage());
  }
  live.ticket->keep_only({live.files.bytes(), live.outcome.stdout_bytes.size() +
                                                  live.outcome.stderr_bytes.size() +
                                                  bytes_for(live.files)});
  record(live);
  if (!parts_.sync_each_line) co_return;
  auto sync = [file = parts_.audit.file(), head = parts_.audit.head()] {
    return ::fdatasync(file) == 0 && ::fdatasync(head) == 0;
  };
  const bool synced = co_await parts_.pool.run(sync);
  if (!synced) log::error("the audit file cannot be forced to the disk");
}

void RunService::record(Live& live) {
  parts_.metrics.count_run(live.outcome, live.queue_seconds);
  parts_.metrics.count_lost(live.events.lost_live());
  log_run(live.outcome, live.subject);
  if (auto written = parts_.audit.append(run_event(live.subject, live.outcome)); !written) {
    log::error("the audit file takes no line: no run starts until it does",
               {{"error", to_string(written.error())},
                {"kept_lines", std::uint64_t{parts_.audit.kept()}}});
  }
  live.audit_room.reset();
}

Task<void> RunService::answer(Live& live) {
  http::Responder& responder = live.responder;
  answering_.insert(&live);
  const ScopeExit answered([&] { answering_.erase(&live); });
  bool reads = true;
  if (live.stream) {
    live.events.close(live.outcome);
    while (auto line = live.events.next_closing()) {
      reads = co_await responder.write(*std::move(line));
      if (!reads) co_return;
    }
    reads = co_await responder.write(live.events.result_prefix());
  }
  const std::uint64_t held_files = live.files.bytes();
  const std::uint64_t for_descriptors = bytes_for(live.files);
  ResultBody body(std::move(live.outcome), std::move(live.files));
  live.ticket->keep_only({held_files, body.bytes() + for_descriptors});
  while (reads) {
    auto piece = body.next();
    if (!piece) {
      log::error("an answer was cut", {{"error", to_string(piece.error())}});
      co_return;
    }
    if (!*piece) break;
    reads = co_await responder.write(**std::move(piece));
  }
  if (!reads) co_return;
  if (live.stream) reads = co_await responder.write(std::string(EventStream::result_suffix()));
  if (reads) (void)co_await responder.finish();
}

Task<void> RunService::cancel(http::Request& request, http::Responder& responder) {
  const auto entry = runs_.find(request.parameters.at("id"));
  if (entry == runs_.end() || !may_see(request.peer, entry->second.owner)) {
    const Problem problem{.status = 404,
                          .code = http::problem_code::kNotFound,
                          .detail = "There is no such run under way."};
    co_await responder.send(to_response(problem));
    co_return;
  }
  entry->second.cancel->cancel();
  co_await responder.send(http::no_content());
}

bool may_see(const http::Peer& peer, const std::optional<uid_t>& owner) {
  return peer.uid == owner || peer.uid == uid_t{0};
}

}  // namespace sbx::daemon
