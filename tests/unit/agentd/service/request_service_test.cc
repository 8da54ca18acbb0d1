// Requests through the service: bounds, owners, cancelling, what is left after a death.
#include "agentd/service/request_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/agent/support/fakes.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::service {
namespace {

using providers::CompletionRequest;
using providers::CompletionResult;
using sbx::async::Task;
using sbx::http::Problem;
using Json = nlohmann::json;

constexpr Caller kSeven{.uid = 7};
constexpr Caller kEight{.uid = 8};
constexpr Caller kRoot{.uid = 0, .all = true};

// A provider whose calls wait until they are let through, or cancelled.
class GatedProvider final : public providers::Provider {
 public:
  explicit GatedProvider(sbx::async::Loop& loop) : changed_(loop) {}
  [[nodiscard]] const providers::ProviderInfo& info() const override { return info_; }
  [[nodiscard]] Task<CompletionResult> complete(
      CompletionRequest /*request*/, const sbx::async::Cancellation* cancellation) override {
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
    co_return test::reply_with("print(1)");
  }
  void open() {
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] Task<void> until_waiting(int number) {
    while (waiting < number) (void)co_await changed_.wait();
  }
  int asked = 0;
  int waiting = 0;
  int let_through = 0;  // of the calls: the first ones

 private:
  providers::ProviderInfo info_{.kind = "fake", .model = "m"};
  bool open_ = false;
  sbx::async::Event changed_;
};

class RequestServiceTest : public ::testing::Test {
 public:  // for the coroutines that are the tests
  RequestServiceTest() {
    sandbox_.info_ = test::shipped_info();
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
                                           .limits = limits});
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
    if (auto* problem = std::get_if<Problem>(&outcome)) co_return problem->code;
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
  history::History history_ = *history::History::open(ledger_.database);
  history::ArtifactFiles artifacts_ = *history::ArtifactFiles::open(ledger_.directory.path());
  std::optional<loop::Services> services_;
  std::optional<RequestService> service_;
};

TEST_F(RequestServiceTest, ARequestIsWorkedOnAndRemembered) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      const std::string id = co_await t.submit();
      EXPECT_TRUE(id.starts_with("rq_")) << id;
      (void)co_await t.service_->idle(sbx::async::test::soon());
      std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "succeeded");
      EXPECT_EQ(t.service_->live(id, kSeven), nullptr) << "it is in the history now";
      state = co_await t.state_of(id, kEight);
      EXPECT_EQ(state, "unknown") << "somebody else's";
      state = co_await t.state_of(id, kRoot);
      EXPECT_EQ(state, "succeeded");
      const auto events = co_await t.service_->stored_events(id, kSeven);
      const Json list = Json::parse(events->text());
      EXPECT_EQ(list.back()["event"], "end");
      for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i]["id"], i + 1);
      EXPECT_EQ(list.size(), 4U);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, RunningAndWaitingHaveBounds) {
  reset({.running = 2, .queued = 1});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      std::vector<std::string> ids;
      for (int i = 0; i < 3; ++i) {
        std::string id = co_await t.submit();
        ids.push_back(std::move(id));
      }
      co_await t.provider_.until_waiting(2);
      EXPECT_EQ(t.service_->running(), 2U);
      EXPECT_EQ(t.service_->queued(), 1U);
      const std::string refused = co_await t.submit();
      EXPECT_EQ(refused, "queue_full");
      std::string state = co_await t.state_of(ids[2]);
      EXPECT_EQ(state, "queued");
      t.provider_.open();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      for (const std::string& id : ids) {
        state = co_await t.state_of(id);
        EXPECT_EQ(state, "succeeded");
      }
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, OnlyWhoWaitsIsToldToWait) {
  reset({.running = 1});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      const std::string first = co_await t.submit();
      const std::string second = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      auto events = co_await t.service_->stored_events(first, kSeven);
      EXPECT_EQ(Json::parse(events->text())[0]["data"]["state"], "generate");
      events = co_await t.service_->stored_events(second, kSeven);
      EXPECT_EQ(Json::parse(events->text())[0]["data"]["state"], "queued");
    }
  };
  run(Body::run(*this));
}

// Its driver begins while it is being put on record.
TEST_F(RequestServiceTest, WhatCannotBePutOnRecordAsksNoModelAndLeavesNothing) {
  auto other = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(other);
  struct Body {
    static Task<void> run(RequestServiceTest& t, store::Database& other) {
      t.provider_.open();
      EXPECT_TRUE(other.execute("ALTER TABLE requests RENAME TO away"));
      const std::string refused = co_await t.submit(kSeven, 100);
      EXPECT_EQ(refused, "not_stored");
      EXPECT_FALSE(t.service_->stores());
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_EQ(t.service_->running(), 0U);
      EXPECT_EQ(t.provider_.asked, 0);
      EXPECT_TRUE(other.execute("ALTER TABLE away RENAME TO requests"));
      const auto list = co_await t.service_->list("", 10, kRoot);
      EXPECT_EQ(Json::parse(list->text())["requests"].size(), 0U);
      co_await t.ledger_.written();
    }
  };
  run(Body::run(*this, *other));
  auto reserved = ledger_.database.statement("SELECT count(*) FROM accounts WHERE reserved > 0");
  ASSERT_TRUE(reserved && *reserved->step());
  EXPECT_EQ(reserved->integer(0), 0);
  EXPECT_EQ(metrics_.text({}).find("agentd_requests_total{"), std::string::npos);
}

TEST_F(RequestServiceTest, TheFilesThatWaitHaveABoundTogether) {
  reset({.held_bytes = 100});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string first = co_await t.submit(kSeven, 100);
      EXPECT_TRUE(first.starts_with("rq_"));
      const std::string second = co_await t.submit(kSeven, 1);
      EXPECT_EQ(second, "queue_full");
      t.provider_.open();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const std::string third = co_await t.submit(kSeven, 100);
      EXPECT_TRUE(third.starts_with("rq_")) << "given back at the end";
      (void)co_await t.service_->idle(sbx::async::test::soon());
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, CancellingEndsWhatRunsAndWhatWaits) {
  reset({.running = 1, .queued = 5});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string running = co_await t.submit();
      const std::string waiting = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      auto done = co_await t.service_->cancel(waiting, kEight);
      EXPECT_EQ(done, RequestService::Cancelled::kUnknown) << "not his";
      done = co_await t.service_->cancel(waiting, kSeven);
      EXPECT_EQ(done, RequestService::Cancelled::kNow);
      done = co_await t.service_->cancel(running, kSeven);
      EXPECT_EQ(done, RequestService::Cancelled::kNow);
      (void)co_await t.service_->idle(sbx::async::test::soon());
      for (const std::string& id : {running, waiting}) {
        const std::string state = co_await t.state_of(id);
        EXPECT_EQ(state, "cancelled");
        EXPECT_EQ(t.ledger_.book.balance("request/" + id + "/tokens")->reserved, 0);
      }
      done = co_await t.service_->cancel(running, kSeven);
      EXPECT_EQ(done, RequestService::Cancelled::kEndedBefore);
      done = co_await t.service_->cancel("rq_none", kSeven);
      EXPECT_EQ(done, RequestService::Cancelled::kUnknown);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, ClosedItTakesNothingAndStopsWhatIsLeft) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string id = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      t.service_->close();
      const std::string refused = co_await t.submit();
      EXPECT_EQ(refused, "shutting_down");
      const auto wake = co_await t.service_->idle(sbx::async::after(std::chrono::milliseconds(1)));
      EXPECT_EQ(wake, sbx::async::Wake::kDeadline);
      t.service_->stop_all();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "cancelled");
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, TextArtifactsAreCleanedAndBinaryOnesAreNot) {
  sandbox::RunResult result = test::ok_run(R"({"type":"file","artifact_path":"/output/a.csv"})");
  const std::string secret = "x a-secret-of-agentd y";
  result.files = {{.path = "a.csv", .size = 22, .content = secret},
                  {.path = "b.bin", .size = 23, .content = secret + '\0'}};
  answer_ = result;
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      const std::string id = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      auto text = co_await t.service_->artifact(id, "a.csv", kSeven);
      EXPECT_TRUE(text);
      if (!text) co_return;
      char buffer[100]{};
      const ssize_t size = ::read(text->file.get(), buffer, sizeof buffer);
      EXPECT_EQ(std::string(buffer), "x [redacted:own-secret] y");
      EXPECT_EQ(static_cast<std::size_t>(size), text->size);
      const auto binary = co_await t.service_->artifact(id, "b.bin", kSeven);
      EXPECT_EQ(binary->size, 23U);
      for (const char* name : {"", "..", "../agentd.db", "a.csv/", "0"}) {
        const auto none = co_await t.service_->artifact(id, name, kSeven);
        EXPECT_FALSE(none) << name;
      }
      const auto others = co_await t.service_->artifact(id, "a.csv", kEight);
      EXPECT_FALSE(others);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, CleaningFilesHoldsUpNobodyWhoAsksForRecords) {
  sandbox::RunResult result = test::ok_run(R"({"type":"file","artifact_path":"/output/a.csv"})");
  result.files = {{.path = "a.csv", .size = 1, .content = "x"}};
  answer_ = result;
  struct Body {
    static Task<void> occupy(sbx::async::WorkPool& pool, std::shared_future<void> until) {
      auto job = [until] { until.wait(); };
      co_await pool.run(job);
    }
    static Task<void> run(RequestServiceTest& t) {
      std::promise<void> free;
      sbx::async::TaskGroup tasks(t.loop_);
      tasks.spawn(occupy(t.pool_, free.get_future().share()));
      t.provider_.open();
      const std::string id = co_await t.submit();
      const auto live = t.service_->live(id, kSeven);
      while (!has_ended(live->record)) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      for (int i = 0; i < 3; ++i) {
        const auto list = co_await t.service_->list("", 10, kSeven);
        EXPECT_TRUE(list);
        EXPECT_FALSE(live->sealed) << "its files wait for being cleaned";
      }
      free.set_value();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_TRUE(live->sealed);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, TheTimeOfTheBudgetIsWithoutTheWaitingForAPlace) {
  reset({.running = 1});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      (void)co_await t.submit();
      const std::string second = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(50)));
      t.provider_.open();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const auto record = co_await t.service_->record(second, kSeven);
      const Json json = Json::parse(record->text());
      const double whole = json["wall_seconds"];
      const double used = json["budget"]["wall_seconds"]["used"];
      EXPECT_GT(used, 0);
      EXPECT_GE(whole - used, 0.05);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, WhatWasStoredIsCleanedAgainAndWhatTheDiskChangedIsNotThere) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const auto stored = co_await t.service_->stored_events("rq_old", kSeven);
      EXPECT_TRUE(stored && stored->text() == R"([{"id":1,"data":"[redacted:own-secret]"}])");
      for (const char* broken : {"rq_cut", "rq_other"}) {
        const auto events = co_await t.service_->stored_events(broken, kSeven);
        EXPECT_FALSE(events) << broken;
        const auto record = co_await t.service_->record(broken, kSeven);
        EXPECT_FALSE(record) << broken;
      }
      const auto list = co_await t.service_->list("", 10, kSeven);
      EXPECT_TRUE(list);
      if (!list) co_return;
      EXPECT_EQ(Json::parse(list->text())["requests"].size(), 1U);
    }
  };
  // As it was before the secret was known, and as a disk may leave it.
  auto database = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "INSERT INTO requests(id, created_ms, owner, ended, summary, record, events, artifact_bytes)"
      " VALUES('rq_old', 1, 7, 1, '{\"id\":\"rq_old\"}', '{}',"
      " '[{\"id\":1,\"data\":\"a-secret-of-agentd\"}]', 0),"
      " ('rq_cut', 1, 7, 1, '{\"id', '{\"id', '[{', 0), ('rq_other', 1, 7, 1, '7', '[]', '{}', "
      "0)"));
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, AResultWhoseFilesCannotBeStoredIsNoSuccess) {
  sandbox::RunResult result = test::ok_run(R"({"type":"file","artifact_path":"/output/a.csv"})");
  result.files = {{.path = "a.csv", .size = 1, .content = "x"}};
  answer_ = result;
  std::filesystem::remove(ledger_.directory.path() + "/artifacts");
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      const std::string id = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const auto record = co_await t.service_->record(id, kSeven);
      const Json json = Json::parse(record->text());
      EXPECT_EQ(json["state"], "failed");
      EXPECT_EQ(json["reason"]["code"], "internal");
      EXPECT_NE(json["reason"]["text"].get<std::string>().find("could not be stored"),
                std::string::npos);
      EXPECT_EQ(json["artifacts"], Json::array());
      EXPECT_GT(json["tokens"], 0) << "what it cost stays on record";
      const auto events = co_await t.service_->stored_events(id, kSeven);
      EXPECT_EQ(Json::parse(events->text()).back()["data"]["state"], "failed");
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, ARecordThatCouldNotBeStoredIsKeptAndStoredLater) {
  reset({.tend_every = std::chrono::milliseconds(1)});
  auto other = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(other);
  struct Body {
    static Task<void> run(RequestServiceTest& t, store::Database& other) {
      const std::string id = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      EXPECT_TRUE(other.execute("ALTER TABLE requests RENAME TO away"));
      t.provider_.open();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_NE(t.service_->live(id, kSeven), nullptr);
      std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "succeeded");
      EXPECT_FALSE(t.service_->stores());
      EXPECT_TRUE(other.execute("ALTER TABLE away RENAME TO requests"));
      sbx::async::TaskGroup tasks(t.loop_);
      tasks.spawn(t.service_->tend(t.ledger_.ledger));
      while (t.service_->live(id, kSeven) != nullptr) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      state = co_await t.state_of(id);
      EXPECT_EQ(state, "succeeded") << "from the history now";
      EXPECT_TRUE(t.service_->stores());
      const auto events = co_await t.service_->stored_events(id, kSeven);
      EXPECT_EQ(Json::parse(events->text()).back()["event"], "end");
    }
  };
  run(Body::run(*this, *other));
}

TEST_F(RequestServiceTest, WhatADeadDaemonLeftHasFailedAndHoldsNothing) {
  ASSERT_TRUE(history_.save(
      {.id = "rq_lost",
       .created_ms = 1,
       .owner = 7,
       .ended = false,
       .summary = redactor_.clean_json({{"id", "rq_lost"}}),
       .record = redactor_.clean_json({{"id", "rq_lost"},
                                       {"text", "t"},
                                       {"state", "queued"},
                                       {"tokens", 0},
                                       {"budget", {{"tokens", {{"limit", 9000}, {"used", 0}}}}}}),
       .events = redactor_.clean_json(Json::array())}));
  ASSERT_TRUE(artifacts_.write("rq_lost", {"half"}));
  ASSERT_TRUE(ledger_.book.reserve(
      {.id = "request/rq_lost/1",
       .lines = {{"request/rq_lost/tokens", 5000, 9000}, {"request/rq_lost/cost", 5000, 9000}}}));
  ASSERT_TRUE(ledger_.book.settle(
      "request/rq_lost/1", {{"request/rq_lost/tokens", 700}, {"request/rq_lost/cost", 1500}}));
  ASSERT_TRUE(service_->recover());
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string state = co_await t.state_of("rq_lost");
      EXPECT_EQ(state, "failed");
      const auto record = co_await t.service_->record("rq_lost", kSeven);
      const Json json = Json::parse(record->text());
      EXPECT_EQ(json["tokens"], 700) << "what it cost is on record";
      EXPECT_EQ(json["cost_usd"], 0.0015);
      EXPECT_EQ(json["budget"]["tokens"]["used"], 700);
      const auto events = co_await t.service_->stored_events("rq_lost", kSeven);
      const Json list = Json::parse(events->text());
      EXPECT_EQ(list.size(), 1U);
      EXPECT_GT(list[0]["id"], 1000) << "above whatever a follower has seen";
      EXPECT_FALSE(t.artifacts_.read("rq_lost", 0));
    }
  };
  run(Body::run(*this));
  EXPECT_TRUE(history_.unfinished()->empty());
}

TEST_F(RequestServiceTest, AfterADeathTheAttemptsThatWereMadeAreOnRecord) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.let_through = 1;
      t.answer_ = test::failed_run("KeyError: 'x'");
      const std::string id = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      co_await t.ledger_.written();
      EXPECT_TRUE(t.service_->recover()) << "as the next agentd would";
      const auto stored = t.history_.find(id);
      Json json = Json::parse((*stored)->record);
      EXPECT_EQ(json["state"], "failed");
      EXPECT_EQ(json["attempts"].size(), 1U);
      EXPECT_EQ(json["attempts"][0]["class"], "runtime");
      EXPECT_EQ(json["attempts_made"], 1);
      EXPECT_EQ(json["tokens"], 1200);
      EXPECT_EQ(json["cost_basis"], "estimate") << "a second call was under way";
      EXPECT_EQ(Json::parse((*stored)->events)[0]["data"]["attempt"], 1);
      t.service_->stop_all();
      (void)co_await t.service_->idle(sbx::async::test::soon());
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, ARequestOfOneAttemptIsNotStoredForIt) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string id = co_await t.submit();
      const auto live = t.service_->live(id, kSeven);
      t.provider_.open();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_EQ(live->record.attempts.size(), 1U);
      EXPECT_EQ(live->kept_attempts, 0U);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, WhoFollowedToTheEndIsWaitedForWhenItIsClosed) {
  using sbx::async::Wake;
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string id = co_await t.submit();
      const std::string nobodys = co_await t.submit();
      co_await t.provider_.until_waiting(2);
      t.service_->live(id, kSeven)->followers = 1;
      t.service_->close();
      t.service_->stop_all();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      auto told = co_await t.service_->told(sbx::async::after(std::chrono::milliseconds(20)));
      EXPECT_EQ(told, Wake::kDeadline) << "not for ever";
      const std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "cancelled");
      told = co_await t.service_->told(sbx::async::test::soon());
      EXPECT_EQ(told, Wake::kReady);
    }
  };
  run(Body::run(*this));
}

TEST(RequestIds, AreToldFromOtherWords) {
  EXPECT_TRUE(RequestService::is_id("rq_0123456789abcdef0123456789abcdef"));
  for (const char* text : {"", "rq_", "zzz", "rq_0123456789abcdef0123456789abcdeg",
                           "rq_0123456789abcdef0123456789abcdef0"}) {
    EXPECT_FALSE(RequestService::is_id(text)) << text;
  }
}

TEST_F(RequestServiceTest, OldRequestsGoWithTheirFilesAndAccounts) {
  reset({.history = 2});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      std::vector<std::string> ids;
      for (int i = 0; i < 4; ++i) {
        std::string id = co_await t.submit();
        ids.push_back(std::move(id));
        (void)co_await t.service_->idle(sbx::async::test::soon());
      }
      std::string state = co_await t.state_of(ids[0]);
      EXPECT_EQ(state, "unknown");
      state = co_await t.state_of(ids[3]);
      EXPECT_EQ(state, "succeeded");
      EXPECT_EQ(t.ledger_.book.balance("request/" + ids[0] + "/tokens")->settled, 0);
      EXPECT_GT(t.ledger_.book.balance("request/" + ids[3] + "/tokens")->settled, 0);
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestServiceTest, MetricsCountWhatHasEnded) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      (void)co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
    }
  };
  run(Body::run(*this));
  const std::string text = metrics_.text({});
  for (const char* line : {"agentd_requests_total{mode=\"code\",state=\"succeeded\"} 1\n",
                           "agentd_attempts_total{class=\"passed\"} 1\n",
                           "agentd_tokens_total{direction=\"input\"} 1000\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace agentd::service
