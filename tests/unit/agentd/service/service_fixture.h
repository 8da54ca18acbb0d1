// A RequestService with a provider, a sandbox and a ledger of the test's.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "agentd/service/request_service.h"
#include "tests/agent/support/fakes.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::service {

using sbx::async::Task;
using Json = nlohmann::json;

inline constexpr Caller kSeven{.uid = 7};
inline constexpr Caller kEight{.uid = 8};
inline constexpr Caller kRoot{.uid = 0, .all = true};

// A provider whose calls wait until they are let through, or cancelled.
class GatedProvider final : public providers::Provider {
 public:
  explicit GatedProvider(sbx::async::Loop& loop) : changed_(loop) {}
  [[nodiscard]] const providers::ProviderInfo& info() const override { return info_; }
  [[nodiscard]] Task<providers::CompletionResult> complete(
      providers::CompletionRequest /*request*/,
      const sbx::async::Cancellation* cancellation) override {
    ++asked;
    ++waiting;
    changed_.notify_all();
    while (!open_ && asked > let_through) {
      const auto wake = co_await changed_.wait(sbx::async::kNoDeadline, cancellation);
      if (wake != sbx::async::Wake::kCancelled) continue;
      --waiting;
      co_return providers::ProviderError{.trouble = providers::Trouble::kCancelled};
    }
    --waiting;
    if (on_answer) on_answer();
    co_return test::reply_with("print(1)");
  }
  void open() {
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] Task<void> until_waiting(int number) {
    while (waiting < number) (void)co_await changed_.wait();
  }
  // After let_through was changed.
  void look() { changed_.notify_all(); }
  int asked = 0;
  int waiting = 0;
  int let_through = 0;  // of the calls: the first ones
  std::function<void()> on_answer{};

 private:
  providers::ProviderInfo info_{.kind = "fake", .model = "m"};
  bool open_ = false;
  sbx::async::Event changed_;
};

class RequestServiceTest : public ::testing::Test {
 public:  // for the coroutines that are the tests
  RequestServiceTest() {
    sandbox_.info_ = test::known(test::shipped_info());
    composer_ = *prompts::Composer::make({});
    reset({});
  }

  void reset(ServiceLimits limits) {
    service_.reset();
    services_.emplace(loop::Services{.provider = provider_,
                                     .sandbox = sandbox_,
                                     .ledger = ledger_.ledger,
                                     .composer = *composer_,
                                     .redactor = redactor_});
    service_.emplace(RequestService::Parts{.loop = loop_,
                                           .pool = pool_,
                                           .store = ledger_.queue,
                                           .loop_services = *services_,
                                           .book = ledger_.book,
                                           .history = history_,
                                           .artifacts = artifacts_,
                                           .redactor = redactor_,
                                           .metrics = metrics_,
                                           .limits = limits,
                                           .check_place = [this]() -> sbx::Result<void> {
                                             if (place_is_there_) return {};
                                             return sbx::host_lacks("stat", 0, "gone", "back");
                                           }});
  }

  static Submitted request(std::size_t held = 0) {
    Submitted submitted;
    submitted.record.text = "do it";
    submitted.record.language = "python";
    submitted.held_bytes = held;
    return submitted;
  }

  // The id, or the problem's code.
  Task<std::string> submit(Caller caller = kSeven, std::size_t held = 0) {
    Submitted submitted = request(held);
    auto outcome = co_await service_->submit(std::move(submitted), caller);
    if (auto* problem = std::get_if<sbx::http::Problem>(&outcome)) co_return problem->code;
    co_return std::get<std::string>(outcome);
  }

  Task<std::string> state_of(std::string id, Caller caller = kSeven) {
    const auto record = co_await service_->record(std::move(id), caller);
    std::string state = "unknown";
    if (record) state = Json::parse(record->text())["state"];
    co_return state;
  }

  void run(Task<void> test) { sbx::async::test::run_on(loop_, std::move(test)); }

  sbx::async::Loop loop_;
  sbx::async::WorkPool pool_{loop_, 1};
  test::TestLedger ledger_{loop_};
  GatedProvider provider_{loop_};
  test::FakeSandbox sandbox_{[this](const sandbox::RunRequest&) { return answer_; }};
  sandbox::RunOutcome answer_ = test::ok_run(R"({"type":"text","data":"hi"})");
  std::optional<prompts::Composer> composer_;
  redact::Redactor redactor_{{redact::Secret("a-secret-of-agentd")}};
  Metrics metrics_;
  bool place_is_there_ = true;
  history::History history_ = *history::History::open(ledger_.database);
  history::ArtifactFiles artifacts_ = *history::ArtifactFiles::open(ledger_.directory.path());
  std::optional<loop::Services> services_;
  std::optional<RequestService> service_;
};

}  // namespace agentd::service
