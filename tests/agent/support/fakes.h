// A provider, a sandbox and a ledger for tests of the loop: what they answer is the test's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agentd/ledger/book.h"
#include "agentd/ledger/sqlite_ledger.h"
#include "agentd/providers/provider.h"
#include "agentd/sandbox/sandbox.h"
#include "agentd/store/queue.h"
#include "tests/support/process.h"

namespace agentd::test {

class FakeProvider final : public providers::Provider {
 public:
  using Answer = std::function<providers::CompletionResult(const providers::CompletionRequest&)>;
  explicit FakeProvider(Answer answer) : answer_(std::move(answer)) {}

  [[nodiscard]] const providers::ProviderInfo& info() const override { return info_; }
  [[nodiscard]] sbx::async::Task<providers::CompletionResult> complete(
      providers::CompletionRequest request, const sbx::async::Cancellation* /*unused*/) override {
    asked.push_back(std::move(request));
    co_return answer_(asked.back());
  }

  std::vector<providers::CompletionRequest> asked;
  providers::ProviderInfo info_{.kind = "fake", .model = "none", .origin = "a test"};

 private:
  Answer answer_;
};

// "```python\nCODE\n```", with a usage that can be.
[[nodiscard]] providers::Completion reply_with(const std::string& code,
                                               providers::Usage usage = {.input_tokens = 1000,
                                                                         .output_tokens = 200});

class FakeSandbox final : public sandbox::Sandbox {
 public:
  using Answer = std::function<sandbox::RunOutcome(const sandbox::RunRequest&)>;
  explicit FakeSandbox(Answer answer) : answer_(std::move(answer)) {}

  [[nodiscard]] sbx::async::Task<sandbox::RunOutcome> run(
      sandbox::RunRequest request, const sbx::async::Cancellation* /*unused*/) override {
    ran.push_back(std::move(request));
    co_return answer_(ran.back());
  }
  [[nodiscard]] sbx::async::Task<sandbox::InfoOutcome> info(
      const sbx::async::Cancellation* /*unused*/) override {
    co_return info_;
  }

  std::vector<sandbox::RunRequest> ran;
  sandbox::InfoOutcome info_;

 private:
  Answer answer_;
};

// What sbxd with the shipped profile and image says of itself, shortened.
[[nodiscard]] sandbox::SandboxInfo shipped_info();
[[nodiscard]] sandbox::InfoOutcome known(sandbox::SandboxInfo info);

// A run that ended ok and printed `out`, or with exit code 1 and `err` on stderr.
[[nodiscard]] sandbox::RunResult ok_run(const std::string& out, double seconds = 0.5);
[[nodiscard]] sandbox::RunResult failed_run(const std::string& err, double seconds = 0.5);

// A ledger of its own in a directory of its own.
class TestLedger {
 public:
  explicit TestLedger(sbx::async::Loop& loop);
  sbx::test::TemporaryDirectory directory;
  store::Database database;
  ledger::Book book;
  store::Queue queue;
  ledger::SqliteLedger ledger;

  // Until what was settled and released so far is in the book.
  [[nodiscard]] sbx::async::Task<void> written();
};

}  // namespace agentd::test
