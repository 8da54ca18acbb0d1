#include "agentd/daemon/daemon.h"

#include <fmt/core.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "agentd/api/routes.h"
#include "agentd/ledger/sqlite_ledger.h"
#include "agentd/loop/services.h"
#include "agentd/providers/choose.h"
#include "agentd/providers/recorder.h"
#include "agentd/sandbox/sbxd_client.h"
#include "agentd/sandbox/watch.h"
#include "agentd/service/metrics.h"
#include "agentd/service/request_service.h"
#include "agentd/service/watched_ledger.h"
#include "http/async/fd_watch.h"
#include "http/async/loop.h"
#include "http/async/task_group.h"
#include "http/async/work_pool.h"
#include "http/client.h"
#include "http/server.h"
#include "runtime/base/log.h"
#include "runtime/base/service.h"

namespace agentd::daemon {
namespace {

using config::AgentConfig;
using sbx::async::Task;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPoolThreads = 2;
constexpr seconds kAnswerTime{5};  // what answers may take after the last request
// What followers of the last may take to ask for its record; and, when a second signal came, what
// everybody may take to read his answer.
constexpr seconds kAskTime{2};

milliseconds milliseconds_of(double time) {
  return milliseconds(static_cast<milliseconds::rep>(std::llround(time * 1000)));
}

record::Budget ceilings_of(const AgentConfig& config) {
  return {.attempts = static_cast<int>(config.attempts),
          .tokens = config.tokens,
          .cost = {std::llround(config.cost_usd * 1e6)},
          .sandbox = milliseconds_of(config.sandbox_seconds),
          .wall = milliseconds_of(config.wall_seconds)};
}

service::ServiceLimits limits_of(const AgentConfig& config) {
  service::ServiceLimits limits;
  limits.running = config.max_running;
  limits.queued = config.max_queued;
  limits.history = config.history_max;
  limits.artifact_bytes = std::int64_t{config.artifacts_megabytes} << 20U;
  return limits;
}

// What can be made only when it is known who the model is.
struct Parts {
  Parts(Started& started, std::unique_ptr<providers::Provider> its_provider,
        sandbox::Sandbox& sandbox, sandbox::SandboxWatch& watch, ledger::Ledger& ledger,
        sbx::async::Loop& loop, sbx::async::WorkPool& pool, store::Queue& store,
        service::Metrics& metrics, std::function<service::Gauges()> gauges)
      : provider(std::move(its_provider)),
        services{.provider = *provider,
                 .sandbox = sandbox,
                 .ledger = ledger,
                 .composer = started.composer,
                 .redactor = started.redactor,
                 .max_tokens = static_cast<int>(started.configuration.max_tokens),
                 .run_wall = milliseconds_of(started.configuration.run_seconds)},
        requests({.loop = loop,
                  .pool = pool,
                  .store = store,
                  .loop_services = services,
                  .book = started.book,
                  .history = started.history,
                  .artifacts = started.artifacts,
                  .redactor = started.redactor,
                  .metrics = metrics,
                  .limits = limits_of(started.configuration),
                  .check_place = [&started] { return started.held_state.check(); }}),
        routes({.pool = pool,
                .requests = requests,
                .metrics = metrics,
                .redactor = started.redactor,
                .provider = *provider,
                .sandbox = watch,
                .composer = started.composer,
                .ceilings = ceilings_of(started.configuration),
                .gauges = std::move(gauges),
                .guard = started.guard ? &*started.guard : nullptr}) {}

  std::unique_ptr<providers::Provider> provider;
  loop::Services services;
  service::RequestService requests;
  api::Routes routes;
};

class Daemon {
 public:
  Daemon(Started started, sbx::UniqueFd signals);
  [[nodiscard]] int run();

 private:
  [[nodiscard]] sbx::http::ServerOptions server_options();
  [[nodiscard]] service::Gauges gauges() const;
  [[nodiscard]] sbx::Result<void> listen();

  Task<void> start();
  [[nodiscard]] sbx::Result<void> open_up(providers::Chosen chosen);
  void fail(const sbx::Error& error);
  Task<void> watch_signals();
  void on_signal();
  Task<void> hurry();
  Task<void> end(seconds drain_time);

  Started started_;
  sbx::UniqueFd signals_;
  double started_at_ = static_cast<double>(::time(nullptr));
  int exit_code_ = 0;
  bool ending_ = false;
  sbx::async::Cancellation hurried_;  // ends every wait for clients

  // Each uses those before it.
  sbx::async::Loop loop_;
  sbx::async::WorkPool pool_;
  store::Queue store_;
  sbx::http::AsyncClient client_;
  sandbox::SbxdClient sandbox_;
  sandbox::SbxdClient watched_;  // that remembers nothing
  sandbox::SandboxWatch watch_;
  ledger::SqliteLedger written_ledger_;
  service::WatchedLedger ledger_;
  service::Metrics metrics_;
  std::unique_ptr<Parts> parts_;
  sbx::http::Router router_;
  sbx::http::Server server_;
  sbx::async::TaskGroup tasks_;
};

Daemon::Daemon(Started started, sbx::UniqueFd signals)
    : started_(std::move(started)),
      signals_(std::move(signals)),
      pool_(loop_, kPoolThreads),
      store_(loop_, started_.database),
      client_(loop_),
      sandbox_(
          loop_, pool_, client_,
          {.socket = [given =
                          started_.places.sbxd_socket] { return config::find_sbxd_socket(given); },
           .on_doubt = [this] { watch_.doubt(); }}),
      watched_(
          loop_, pool_, client_,
          {.socket = [given =
                          started_.places.sbxd_socket] { return config::find_sbxd_socket(given); },
           .info_age = milliseconds(0)}),
      watch_(loop_, watched_),
      written_ledger_(started_.book, store_),
      ledger_(written_ledger_, [this] { return started_.held_state.check(); }),
      server_(loop_, router_, server_options()),
      tasks_(loop_) {}

sbx::http::ServerOptions Daemon::server_options() {
  sbx::http::ServerOptions options;
  if (const auto& allowed = started_.configuration.allow_uids; !allowed.empty()) {
    options.admit = [&allowed](const sbx::http::Peer& peer) {
      return !peer.uid || *peer.uid == 0 ||
             std::find(allowed.begin(), allowed.end(), *peer.uid) != allowed.end();
    };
  }
  options.on_problem = [this](sbx::http::Problem& problem) {
    api::clean(problem, started_.redactor);
  };
  options.on_exchange = [this](const sbx::http::Exchange& exchange) {
    metrics_.count_http(exchange.route, exchange.status);
    if (!exchange.failure.empty()) {
      sbx::log::error("a handler failed", {{"route", exchange.route}, {"error", exchange.failure}});
    }
  };
  return options;
}

service::Gauges Daemon::gauges() const {
  service::Gauges gauges;
  gauges.running = parts_->requests.running();
  gauges.queued = parts_->requests.queued();
  gauges.unsaved_records = parts_->requests.unsaved();
  gauges.unwritten_charges = ledger_.unwritten();
  gauges.connections = server_.counters().connections;
  gauges.accept_failures = server_.counters().accept_failures;
  gauges.resident_bytes = sbx::resident_bytes();
  gauges.open_fds = sbx::open_descriptors();
  gauges.cpu_seconds = sbx::cpu_seconds();
  gauges.started_at = started_at_;
  return gauges;
}

int Daemon::run() {
  tasks_.spawn(watch_signals());
  tasks_.spawn(start());
  loop_.run();
  sbx::log::info("ended", {{"exit_code", std::int64_t{exit_code_}}});
  return exit_code_;
}

void Daemon::fail(const sbx::Error& error) {
  const redact::Redactor& redactor = started_.redactor;
  fmt::print(stderr, "agentd: {}\n", redactor.clean(to_string(error)).text());
  if (!error.fix.empty()) {
    fmt::print(stderr, "agentd: fix: {}\n", redactor.clean(error.fix).text());
  }
  exit_code_ = error.code == sbx::ErrorCode::kInvalid ? 2 : 1;
  loop_.stop();
}

Task<void> Daemon::start() {
  auto chosen = co_await providers::choose_provider(loop_, client_, started_.configuration,
                                                    started_.key, providers::local_servers());
  if (!chosen) {
    fail(chosen.error());
    co_return;
  }
  if (auto opened = open_up(*std::move(chosen)); !opened) {
    fail(opened.error());
    co_return;
  }
  sbx::notify_systemd("READY=1");
  co_await parts_->requests.tend(ledger_);
}

sbx::Result<void> Daemon::open_up(providers::Chosen chosen) {
  if (!started_.record_to.empty()) {
    SBX_ASSIGN(chosen.provider, providers::Recorder::open(std::move(chosen.provider),
                                                          started_.record_to, started_.redactor));
    chosen.said += ", recorded to " + started_.record_to;
  }
  parts_ = std::make_unique<Parts>(started_, std::move(chosen.provider), sandbox_, watch_, ledger_,
                                   loop_, pool_, store_, metrics_, [this] { return gauges(); });
  SBX_TRY(parts_->requests.recover());
  parts_->routes.add_to(router_);
  // The first line, for people; what follows on stderr is the log.
  fmt::print("agentd: {}\n", started_.redactor.clean(chosen.said).text());
  // The one place where the start token is shown.
  if (!started_.url.empty()) fmt::print("agentd: {}\n", started_.url);
  (void)std::fflush(stdout);  // nobody need be reading
  return listen();
}

sbx::Result<void> Daemon::listen() {
  for (sbx::http::Listener& listener : started_.listeners) {
    sbx::log::info("listening", {{"socket", listener.name()}});
    SBX_TRY(server_.listen(std::move(listener)));
  }
  started_.listeners.clear();
  return {};
}

Task<void> Daemon::watch_signals() {
  auto watch = sbx::async::FdWatch::watch(loop_, signals_.get());
  if (!watch) co_return;  // a signalfd can be watched
  for (;;) {
    (void)co_await watch->readable();
    signalfd_siginfo information{};
    if (::read(signals_.get(), &information, sizeof information) !=
        static_cast<ssize_t>(sizeof information)) {
      continue;
    }
    sbx::log::info("signal", {{"number", std::uint64_t{information.ssi_signo}}});
    on_signal();
  }
}

void Daemon::on_signal() {
  if (!parts_) return loop_.stop();  // not yet serving
  if (ending_) return tasks_.spawn(hurry());
  ending_ = true;
  sbx::notify_systemd("STOPPING=1");
  tasks_.spawn(end(seconds(started_.configuration.drain_seconds)));
}

// After a second signal: who reads has his answer by then, who does not is left.
Task<void> Daemon::hurry() {
  parts_->requests.stop_all();
  (void)co_await parts_->requests.idle(sbx::async::after(kAnswerTime));
  (void)co_await loop_.sleep_until(sbx::async::after(kAskTime));
  hurried_.cancel();
}

// New connections are still taken, and told why there is nothing for them.
Task<void> Daemon::end(seconds drain_time) {
  parts_->requests.close();
  const auto ended = co_await parts_->requests.idle(sbx::async::after(drain_time));
  if (ended != sbx::async::Wake::kReady) {
    parts_->requests.stop_all();
    (void)co_await parts_->requests.idle(sbx::async::after(kAnswerTime));
  }
  (void)co_await parts_->requests.told(sbx::async::after(kAskTime));  // who does not ask need not
  const bool stored = co_await parts_->requests.store_the_rest(sbx::async::after(kAnswerTime));
  if (!stored) exit_code_ = 1;
  co_await server_.drain(sbx::async::after(kAnswerTime), &hurried_);
  loop_.stop();
}

}  // namespace

int serve(Started started, sbx::UniqueFd signals) {
  return Daemon(std::move(started), std::move(signals)).run();
}

}  // namespace agentd::daemon
