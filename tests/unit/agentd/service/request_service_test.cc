// Requests through the service: bounds, owners, cancelling, its end.
#include "agentd/service/request_service.h"

#include "tests/unit/agentd/service/service_fixture.h"

namespace agentd::service {
namespace {

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

TEST_F(RequestServiceTest, IdsAreInTheOrderOfTimeAndDifferInAThousandthOfASecondToo) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      constexpr std::size_t kTime = 15;  // "rq_" and 12 digits
      std::set<std::string> chances;
      std::string before;
      for (int i = 0; i < 10; ++i) {
        const std::string id = co_await t.submit();
        EXPECT_TRUE(RequestService::is_id(id)) << id;
        EXPECT_LE(before, id.substr(0, kTime));
        before = id.substr(0, kTime);
        chances.insert(id.substr(kTime));
        (void)co_await t.service_->idle(sbx::async::test::soon());
      }
      EXPECT_EQ(chances.size(), 10U);
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

TEST_F(RequestServiceTest, AnAttemptThatWasCancelledHasNotPassed) {
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.let_through = 1;
      t.answer_ = sandbox::SandboxFailure{.kind = sandbox::SandboxFailure::Kind::kCancelled};
      t.provider_.on_answer = [&t] { t.service_->stop_all(); };
      const std::string id = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const auto record = co_await t.service_->record(id, kSeven);
      const Json json = Json::parse(record->text());
      EXPECT_EQ(json["state"], "cancelled");
      EXPECT_EQ(json["attempts"][0]["outcome"], "cancelled");
      EXPECT_EQ(json["attempts"][0]["class"], Json());
    }
  };
  run(Body::run(*this));
  const std::string text = metrics_.text({});
  EXPECT_NE(text.find("agentd_attempts_total{class=\"cancelled\"} 1\n"), std::string::npos) << text;
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
