// SbxdClient: the Sandbox behind sbxd's Unix socket.
//
// Start order does not matter: nothing is asked before it is needed, and what could not be had is
// asked for again. Closing the connection, which cancelling does, kills the run. Runs on the loop;
// large bodies are built and read on the pool.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agentd/sandbox/sandbox.h"
#include "http/async/loop.h"
#include "http/async/work_pool.h"
#include "http/client.h"

namespace agentd::sandbox {

struct SbxdOptions {
  std::function<std::string()> socket{};             // where sbxd is, asked before each connection
  std::chrono::milliseconds info_age{60'000};        // older ones are asked for again
  std::chrono::milliseconds behind_deadline{5'000};  // for the answer to a run that ended with it
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
  [[nodiscard]] sbx::async::Task<std::string> body_of(RunRequest request);
  [[nodiscard]] sbx::async::Task<RunOutcome> outcome_of(std::string body);
  [[nodiscard]] SandboxFailure failure_of(const sbx::http::ClientError& error) const;

  sbx::async::Loop& loop_;
  sbx::async::WorkPool& pool_;
  sbx::http::AsyncClient& client_;
  SbxdOptions options_;
  std::optional<SandboxInfo> info_;
  std::chrono::steady_clock::time_point info_at_;
};

}  // namespace agentd::sandbox
