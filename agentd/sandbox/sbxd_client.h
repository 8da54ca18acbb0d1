// SbxdClient: the Sandbox behind sbxd's Unix socket.
//
// Start order does not matter: nothing is asked before it is needed, and what could not be had is
// asked for again. What sbxd said of itself is remembered, but told only while sbxd was heard a
// moment ago; a run's answer counts. Closing the connection, which cancelling does, kills the run.
// Of a run that takes long it is asked now and then whether sbxd still answers: one that does not
// twice in a row is given up as silent. Runs on the loop; large bodies are built and read on the
// pool.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "agentd/sandbox/sandbox.h"
#include "http/async/loop.h"
#include "http/async/work_pool.h"
#include "http/client.h"

namespace agentd::sandbox {

struct SbxdOptions {
  std::function<std::string()> socket{};             // where sbxd is, asked before each connection
  std::function<void()> on_doubt{};                  // a call had no answer
  std::chrono::milliseconds info_age{60'000};        // older ones are asked for again,
  std::chrono::milliseconds heard_age{1'000};        // and any, if sbxd was not heard for so long
  std::chrono::milliseconds answer_time{5'000};      // for info; who takes longer is silent
  std::chrono::milliseconds look_every{5'000};       // during a run, whether sbxd still answers
  std::chrono::milliseconds behind_deadline{5'000};  // for the answer to a run that ended with it
  std::chrono::milliseconds restart_time{2'000};     // for one that is down to come back
  std::chrono::milliseconds restart_look{100};       // how often it is looked for meanwhile
  int busy_tries = 5;                                // how often a refusal "for now" is waited out
  std::chrono::milliseconds busy_wait{1000};         // where no Retry-After says how long
};

class SbxdClient final : public Sandbox {
 public:
  // All borrowed; they outlive it.
  SbxdClient(sbx::async::Loop& loop, sbx::async::WorkPool& pool, sbx::http::AsyncClient& client,
             SbxdOptions options);

  [[nodiscard]] sbx::async::Task<RunOutcome> run(
      RunRequest request, const sbx::async::Cancellation* cancellation) override;
  [[nodiscard]] sbx::async::Task<InfoOutcome> info(
      const sbx::async::Cancellation* cancellation) override;

 private:
  struct Watched;
  using Answer = std::variant<sbx::http::ClientResponse, SandboxFailure>;
  [[nodiscard]] sbx::async::Task<Answer> exchange(sbx::http::ClientRequest call,
                                                  sbx::async::Deadline deadline,
                                                  const sbx::async::Cancellation* cancellation);
  [[nodiscard]] sbx::async::Task<InfoOutcome> come_back(
      sbx::async::Deadline deadline, const sbx::async::Cancellation* cancellation);
  [[nodiscard]] sbx::async::Task<void> look_after(Watched* watched);
  [[nodiscard]] sbx::async::Task<InfoOutcome> ask_info(
      const sbx::async::Cancellation* cancellation);
  void heard();
  void doubt();
  [[nodiscard]] sbx::async::Task<std::string> body_of(RunRequest request);
  [[nodiscard]] sbx::async::Task<RunOutcome> outcome_of(std::string body);
  [[nodiscard]] SandboxFailure failure_of(const sbx::http::ClientError& error) const;

  sbx::async::Loop& loop_;
  sbx::async::WorkPool& pool_;
  sbx::http::AsyncClient& client_;
  SbxdOptions options_;
  SharedInfo info_;  // null: not known yet
  std::chrono::steady_clock::time_point info_at_;
  std::optional<std::chrono::steady_clock::time_point> heard_at_;
  bool in_doubt_ = false;  // the last call had no answer
};

}  // namespace agentd::sandbox
