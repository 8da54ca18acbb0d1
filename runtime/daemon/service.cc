#include "runtime/daemon/service.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include "http/async/fd_watch.h"
#include "http/async/task_group.h"
#include "http/async/work_pool.h"
#include "http/server.h"
#include "runtime/base/log.h"
#include "runtime/base/service.h"
#include "runtime/base/sys.h"
#include "runtime/daemon/admission.h"
#include "runtime/daemon/audit_event.h"
#include "runtime/daemon/audit_keeper.h"
#include "runtime/daemon/readiness.h"
#include "runtime/daemon/routes.h"
#include "runtime/daemon/run_service.h"
#include "runtime/daemon/session_files.h"
#include "runtime/daemon/session_routes.h"
#include "runtime/daemon/sessions.h"
#include "runtime/plan/image.h"

namespace sbx::daemon {
namespace {

using async::Task;
using std::chrono::seconds;

constexpr std::size_t kPoolThreads = 2;
// Clients on this machine: one that reads slower than this holds a run's files for nothing.
constexpr std::uint64_t kPaceBytes = 256 * 1024;
// Answers of all kinds on their way; what a run wrote is counted by the admission before. Twice the
// longest there is, which is a page of file names.
constexpr std::uint64_t kUnsentBytes = 16U << 20;
// What runs may take to end when they are cancelled, and answers after the last run.
constexpr seconds kAnswerTime{5};
// What answers may take after the last run when a second signal came.
constexpr seconds kLastWord{1};

http::ServerLimits server_limits(const DaemonConfig& config) {
  http::ServerLimits limits;
  limits.connections = config.max_connections;
  limits.connections_per_peer = config.max_connections_per_peer;
  limits.queue_bytes = static_cast<std::size_t>(config.stream_buffer);
  limits.buffered_bytes = config.body_budget;
  limits.buffered_bytes_per_peer = config.body_budget / 2;
  limits.unsent_bytes = std::max(kUnsentBytes, 2 * config.stream_buffer);
  limits.unsent_bytes_per_peer = limits.unsent_bytes / 2;
  limits.pace_bytes = kPaceBytes;
  return limits;
}

AdmissionLimits admission_limits(const DaemonConfig& config, std::uint64_t budget) {
  return {config.max_running, config.max_queued, config.max_queued_per_peer, budget,
          config.answer_budget};
}

class Service {
 public:
  Service(Started started, UniqueFd signals);
  [[nodiscard]] int run();

 private:
  [[nodiscard]] RunServiceParts parts();
  [[nodiscard]] SessionBounds session_bounds() const;
  [[nodiscard]] SessionTimes session_times() const;
  [[nodiscard]] http::ServerOptions server_options();
  [[nodiscard]] Result<void> listen();
  [[nodiscard]] Gauges gauges() const;
  [[nodiscard]] Result<InfoSource> info() const;

  Task<void> watch_signals();
  Task<void> watch_spawner();
  Task<void> reap();
  Task<void> end();
  Task<void> hurry();
  void stop_runs();
  void begin_end(seconds drain_time);

  Started started_;
  UniqueFd signals_;
  UniqueFd spawner_;  // pidfd
  double started_at_ = static_cast<double>(::time(nullptr));
  int exit_code_ = 0;
  async::Deadline end_by_ = async::kNoDeadline;
  async::Cancellation hurried_;  // ends every wait for clients

  // Each uses those before it.
  async::Loop loop_;
  async::WorkPool pool_;
  async::WorkPool transfers_;  // sessions' trees on their way into and out of runs
  Metrics metrics_;
  Admission admission_;
  Readiness readiness_;
  AuditKeeper audit_keeper_;
  RunService runs_;
  Sessions sessions_;
  SessionRoutes session_routes_;
  SessionFiles session_files_;
  InfoRoutes info_routes_;
  http::Router router_;
  http::Server server_;
  async::TaskGroup tasks_;
};

Service::Service(Started started, UniqueFd signals)
    : started_(std::move(started)),
      signals_(std::move(signals)),
      pool_(loop_, kPoolThreads),
      // One for each run: filling takes as long as its limits make it, and must not keep others
      // from theirs.
      transfers_(loop_, started_.configuration.daemon.max_running),
      admission_(admission_limits(started_.configuration.daemon, started_.memory_budget)),
      readiness_(loop_, started_.sandbox, started_.audit),
      audit_keeper_(loop_, pool_, started_.audit, readiness_,
                    seconds(started_.configuration.daemon.audit_sync_seconds)),
      runs_(parts()),
      sessions_(
          loop_, pool_, transfers_, std::move(started_.sessions), session_bounds(),
          [&sandbox = started_.sandbox](std::uint32_t id) { return sandbox.lease_session_id(id); },
          std::chrono::system_clock::now),
      session_routes_(sessions_, runs_, started_.rules, session_times(),
                      seconds(started_.configuration.daemon.queue_seconds)),
      session_files_(sessions_),
      info_routes_{pool_,
                   metrics_,
                   runs_,
                   sessions_,
                   [this] { return gauges(); },
                   [this] { return info(); }},
      server_(loop_, router_, server_options()),
      tasks_(loop_) {
  add_info_routes(router_, info_routes_);
  add_run_routes(router_, runs_);
  add_session_routes(router_, session_routes_);
  add_session_file_routes(router_, session_files_);
  metrics_.count_reaped(static_cast<std::uint64_t>(started_.swept.groups),
                        started_.swept.runs.size());
}

RunServiceParts Service::parts() {
  const DaemonConfig& config = started_.configuration.daemon;
  return {.loop = loop_,
          .pool = pool_,
          .sandbox = started_.sandbox,
          .admission = admission_,
          .audit = started_.audit,
          .readiness = readiness_,
          .metrics = metrics_,
          .rules = started_.rules,
          .queue_time = seconds(config.queue_seconds),
          .answer_bytes_per_file = config.answer_bytes_per_file,
          .sync_each_line = config.audit_sync_seconds == 0};
}

SessionBounds Service::session_bounds() const {
  const DaemonConfig& config = started_.configuration.daemon;
  policy::Limits most;
  most.work = most.work_inodes = std::numeric_limits<std::uint64_t>::max();
  started_.rules.ceilings.apply(most);
  return {config.session_max, config.session_max_per_peer, most.work, most.work_inodes};
}

SessionTimes Service::session_times() const {
  const DaemonConfig& config = started_.configuration.daemon;
  return {seconds(config.session_idle_seconds), seconds(config.session_age_seconds)};
}

http::ServerOptions Service::server_options() {
  http::ServerOptions options;
  options.limits = server_limits(started_.configuration.daemon);
  if (const auto& allowed = started_.configuration.daemon.allow_uids; !allowed.empty()) {
    options.admit = [&allowed](const http::Peer& peer) {
      return peer.uid && std::find(allowed.begin(), allowed.end(), *peer.uid) != allowed.end();
    };
  }
  options.on_exchange = [this](const http::Exchange& exchange) {
    metrics_.count_request(exchange.route, exchange.status);
    if (!exchange.failure.empty()) {
      log::error("a handler failed", {{"route", exchange.route}, {"error", exchange.failure}});
    }
    log::debug("request", {{"method", to_string(exchange.method)},
                           {"route", exchange.route},
                           {"status", std::int64_t{exchange.status}},
                           {"microseconds", std::int64_t{exchange.took.count()}}});
  };
  return options;
}

Gauges Service::gauges() const {
  Gauges gauges;
  gauges.running = admission_.running();
  gauges.queued = admission_.queued();
  gauges.memory_reserved = admission_.reserved();
  gauges.memory_budget = started_.memory_budget;
  gauges.answers = admission_.answers();
  gauges.answer_budget = started_.configuration.daemon.answer_budget;
  const http::ServerCounters served = server_.counters();
  gauges.unsent_bytes = served.unsent_bytes;
  gauges.buffered_bytes = served.buffered_bytes;
  gauges.sessions = sessions_.count();
  const Sessions::Counters& sessions = sessions_.counters();
  gauges.sessions_made = sessions.created;
  gauges.sessions_deleted = sessions.deleted;
  gauges.sessions_idle = sessions.expired_idle;
  gauges.sessions_aged = sessions.expired_age;
  gauges.connections = served.connections;
  gauges.not_admitted = served.not_admitted;
  gauges.peer_is_full = served.peer_is_full;
  gauges.all_is_full = served.all_is_full;
  gauges.accept_failures = served.accept_failures;
  gauges.resident_bytes = resident_bytes();
  gauges.open_fds = open_descriptors();
  gauges.cpu_seconds = cpu_seconds();
  gauges.started_at = started_at_;
  gauges.audit_healthy = started_.audit.healthy();
  gauges.audit_lines = started_.audit.lines();
  gauges.audit_kept = started_.audit.kept();
  return gauges;
}

Result<InfoSource> Service::info() const {
  const Configuration& configuration = started_.configuration;
  InfoSource source;
  source.version = SBX_VERSION;
  source.config = &configuration.daemon;
  source.rules = &started_.rules;
  source.memory_budget = started_.memory_budget;
  SBX_ASSIGN(source.image, plan::find_image(configuration.daemon.image, configuration.runtime));
  policy::Policy policy = started_.rules.profiles.front();
  started_.rules.ceilings.apply(policy.limits);
  plan::Request request;
  request.argv = {"/bin/true"};
  SBX_ASSIGN(source.layers, started_.sandbox.check(policy, request));
  return source;
}

Result<void> Service::listen() {
  for (http::Listener& listener : started_.listeners) {
    log::info("listening", {{"socket", listener.name()}});
    SBX_TRY(server_.listen(std::move(listener)));
  }
  started_.listeners.clear();
  return {};
}

int Service::run() {
  spawner_ =
      UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, started_.sandbox.spawner_pid(), 0)));
  if (!spawner_) {
    log::error("pidfd_open", {{"error", to_string(sys_error("pidfd_open"))}});
    return 1;
  }
  if (auto loaded = sessions_.load(); !loaded) {
    log::error("cannot load the sessions", {{"error", to_string(loaded.error())}});
    return 1;
  }
  if (auto listening = listen(); !listening) {
    log::error("cannot listen", {{"error", to_string(listening.error())}});
    return 1;
  }
  tasks_.spawn(watch_signals());
  tasks_.spawn(watch_spawner());
  tasks_.spawn(readiness_.ask_spawner());
  tasks_.spawn(reap());
  tasks_.spawn(audit_keeper_.write_kept());
  tasks_.spawn(audit_keeper_.sync());
  tasks_.spawn(sessions_.tend_always());
  notify_systemd("READY=1");
  loop_.run();
  // A thread of the pool may still write into what lies in the queue of a spawner that was stopped,
  // and is waited for before the spawner is ended.
  (void)sys::pidfd_signal(spawner_.get(), SIGCONT);
  if (!audit_keeper_.leave()) exit_code_ = 1;
  log::info("ended", {{"exit_code", std::int64_t{exit_code_}}});
  return exit_code_;
}

Task<void> Service::watch_signals() {
  auto watch = async::FdWatch::watch(loop_, signals_.get());
  if (!watch) co_return;  // a signalfd can be watched
  for (;;) {
    (void)co_await watch->readable();
    signalfd_siginfo information;
    if (::read(signals_.get(), &information, sizeof information) !=
        static_cast<ssize_t>(sizeof information)) {
      continue;
    }
    log::info("signal", {{"number", std::uint64_t{information.ssi_signo}},
                         {"from_pid", std::uint64_t{information.ssi_pid}}});
    if (runs_.closed()) {
      tasks_.spawn(hurry());
    } else {
      begin_end(seconds(started_.configuration.daemon.drain_seconds));
    }
  }
}

Task<void> Service::watch_spawner() {
  auto watch = async::FdWatch::watch(loop_, spawner_.get());
  if (!watch) co_return;  // a pidfd can be watched
  (void)co_await watch->readable();
  log::error("the spawner died: no run can start any more, sbxd ends and must be started again");
  readiness_.disable("The spawner has died; sbxd is about to end.");
  exit_code_ = 1;
  if (!runs_.closed()) begin_end(kAnswerTime);
}

Task<void> Service::reap() {
  const auto period = seconds(started_.configuration.daemon.reaper_seconds);
  for (;;) {
    (void)co_await loop_.sleep_until(async::after(period));
    (void)readiness_.check_audit();  // which logs what it finds
    (void)readiness_.image_problem();
    // What many small blocks left between them; malloc gives back only what is at its end.
    (void)::malloc_trim(0);
    auto job = [&sandbox = started_.sandbox] { return sandbox.sweep(); };
    const auto swept = co_await pool_.run(job);
    if (!swept) {
      log::warning("leftovers could not be removed", {{"error", to_string(swept.error())}});
      continue;
    }
    if (swept->groups == 0 && swept->runs.empty()) continue;
    metrics_.count_reaped(static_cast<std::uint64_t>(swept->groups), swept->runs.size());
    log::info("reaped", {{"groups", std::int64_t{swept->groups}},
                         {"records", std::uint64_t{swept->runs.size()}}});
    for (const std::string& run : swept->runs) {
      if (auto written = started_.audit.append(reaped_event(run)); !written) {
        log::error("audit", {{"error", to_string(written.error())}});
      }
    }
  }
}

void Service::begin_end(seconds drain_time) {
  log::info("ending", {{"running", std::uint64_t{admission_.running()}},
                       {"queued", std::uint64_t{admission_.queued()}},
                       {"drain_seconds", std::int64_t{drain_time.count()}}});
  notify_systemd("STOPPING=1");
  end_by_ = async::after(drain_time);
  runs_.close(drain_time);
  tasks_.spawn(end());
}

// A silent spawner cannot tell of their end, nor hold it up.
void Service::stop_runs() {
  runs_.stop();
  tasks_.spawn(readiness_.doubt_spawner());
}

// After a second signal: who reads has his answer by then, who does not is left.
Task<void> Service::hurry() {
  stop_runs();
  (void)co_await runs_.runs_over(async::after(kAnswerTime));
  (void)co_await loop_.sleep_until(async::after(kLastWord));
  hurried_.cancel();
}

// New connections are still taken, and told why there is no run for them.
Task<void> Service::end() {
  const async::Wake ended = co_await runs_.idle(end_by_, &hurried_);
  if (ended != async::Wake::kReady) {
    stop_runs();
    (void)co_await runs_.idle(async::after(kAnswerTime), &hurried_);
  }
  co_await server_.drain(async::after(kAnswerTime), &hurried_);
  co_await sessions_.tend();
  loop_.stop();
}

}  // namespace

int serve(Started started, UniqueFd signals) {
  return Service(std::move(started), std::move(signals)).run();
}

}  // namespace sbx::daemon
