// RunService: runs for clients, from a parsed request to the sent result. Stage: daemon, the loop's
// thread.
//
// One coroutine a request: admission, start, live events, audit, answer. Before the run begins
// every failure is a problem; once it began the answer is 200 with the result, whatever its status.
// A client that leaves cancels its run. Sessions use serve() with their workspace.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/work_pool.h"
#include "http/handler.h"
#include "runtime/daemon/admission.h"
#include "runtime/daemon/audit_log.h"
#include "runtime/daemon/metrics.h"
#include "runtime/daemon/readiness.h"
#include "runtime/daemon/result_body.h"
#include "runtime/daemon/run_request.h"
#include "runtime/sandbox.h"
#include "runtime/workspace/workspace.h"

namespace sbx::daemon {

// What the service borrows from main(), which outlives it.
struct RunServiceParts {
  async::Loop& loop;
  async::WorkPool& pool;
  Sandbox& sandbox;
  Admission& admission;
  AuditLog& audit;
  Readiness& readiness;
  Metrics& metrics;
  const RequestRules& rules;
  std::chrono::seconds queue_time{60};
  std::uint64_t answer_bytes_per_file = 0;  // see DaemonConfig
  bool sync_each_line = false;              // the audit file, before each result is sent
};

// A session's share of a run.
struct SessionRun {
  std::string id;
  workspace::Workspace* workspace = nullptr;  // outlives serve(), as does what follows
  // Cancels the run: the session is being deleted. When it is raised before the run begins, serve()
  // returns without an answer.
  const async::Cancellation* deleted = nullptr;
};

class RunService {
 public:
  explicit RunService(RunServiceParts parts) : parts_(parts), left_(parts.loop) {}
  RunService(const RunService&) = delete;
  RunService& operator=(const RunService&) = delete;

  // POST /v1/run, DELETE /v1/runs/{id}.
  [[nodiscard]] async::Task<void> run(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> cancel(http::Request& request, http::Responder& responder);

  // The body's RunRequest; large ones are parsed on the pool.
  [[nodiscard]] async::Task<OrProblem<RunRequest>> parse(std::string body, RunPlace place);
  // Runs it and answers. `request` and `responder` are the handler's.
  [[nodiscard]] async::Task<void> serve(RunRequest run, std::optional<SessionRun> session,
                                        http::Request& request, http::Responder& responder);

  // From here on: no new run (503); those that wait are refused.
  void close(std::chrono::seconds drain_time);
  // Cancels all runs.
  void stop() { stopping_.cancel(); }
  // Until no request is on its way through serve(): kReady.
  [[nodiscard]] async::Task<async::Wake> idle(async::Deadline deadline,
                                              const async::Cancellation* cancellation);
  // Until no sandbox is left, whoever still has to read a result.
  [[nodiscard]] async::Task<async::Wake> runs_over(async::Deadline deadline);
  [[nodiscard]] bool closed() const { return closing_.cancelled(); }
  // Why no run can start now, or nothing: sbxd ends, or what Readiness knows.
  [[nodiscard]] std::optional<http::Problem> refuse_now() const;
  // That, and what a run would find out as it starts.
  [[nodiscard]] std::optional<http::Problem> health() const;
  // What it found out then, as its answer.
  [[nodiscard]] http::Problem no_start(const Error& error) const;

 private:
  struct Live;      // one request on its way through serve()
  struct Registry;  // its entry in runs_

  [[nodiscard]] http::Problem too_many(const Refusal& refusal);
  [[nodiscard]] async::Task<std::optional<http::Problem>> admit(Live& live);
  void leave_slow_readers(const Refusal& lacking, const Live& waiting);
  [[nodiscard]] async::Task<std::optional<http::Problem>> start(Live& live);
  [[nodiscard]] async::Task<void> finish(Live& live);
  [[nodiscard]] async::Task<void> answer(Live& live);
  void record(Live& live);
  // What their descriptors count in the budget of answers.
  [[nodiscard]] std::uint64_t bytes_for(const KeptFiles& files) const {
    return files.count() * parts_.answer_bytes_per_file;
  }

  RunServiceParts parts_;
  async::Cancellation closing_;
  async::Cancellation stopping_;
  std::chrono::steady_clock::time_point drained_at_{};

  struct Entry {
    std::optional<uid_t> owner;
    async::Cancellation* cancel;
  };
  std::map<std::string, Entry, std::less<>> runs_;  // under way, by id
  std::set<const Live*> answering_;
  std::size_t serving_ = 0;
  async::Event left_;  // one request, or one run, less
};

// Root, and the owner. Peers without a uid (TCP) own what others without one made.
[[nodiscard]] bool may_see(const http::Peer& peer, const std::optional<uid_t>& owner);

}  // namespace sbx::daemon
