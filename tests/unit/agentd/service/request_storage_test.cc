// What is kept of requests: before anything is spent, after a death, what was refused.
#include <filesystem>
#include <future>

#include "tests/unit/agentd/service/service_fixture.h"

namespace agentd::service {
namespace {

std::int64_t rows_in_the_ledger(store::Database& database) {
  auto rows = database.statement(
      "SELECT (SELECT count(*) FROM reservations) + (SELECT count(*) FROM accounts)");
  EXPECT_TRUE(rows && *rows->step());
  return rows->integer(0);
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
  EXPECT_EQ(rows_in_the_ledger(ledger_.database), 0);
  EXPECT_EQ(metrics_.text({}).find("agentd_requests_total{"), std::string::npos);
}

TEST_F(RequestServiceTest, OfWhatAFullDiskRefusesNothingIsLeftAndTheFixIsToldToMakeRoom) {
  std::string limit = "PRAGMA max_page_count = ";
  {
    auto pages = ledger_.database.statement("PRAGMA page_count");
    ASSERT_TRUE(pages && *pages->step());
    limit += std::to_string(pages->integer(0));
  }
  ASSERT_TRUE(ledger_.database.execute(limit.c_str()));
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      t.provider_.open();
      Submitted large = RequestServiceTest::request(100);
      large.record.text = std::string(100'000, 'x');
      const auto outcome = co_await t.service_->submit(std::move(large), kSeven);
      const auto* problem = std::get_if<sbx::http::Problem>(&outcome);
      EXPECT_NE(problem, nullptr);
      if (problem == nullptr) co_return;
      EXPECT_EQ(problem->status, 500);
      EXPECT_EQ(problem->code, "not_stored");
      EXPECT_NE(problem->fix.find("make room"), std::string::npos) << problem->fix;
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_EQ(t.provider_.asked, 0);
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(rows_in_the_ledger(ledger_.database), 0);
  EXPECT_NE(metrics_.text({}).find("agentd_refused_total{code=\"not_stored\"} 1\n"),
            std::string::npos);
}

// Its end could be put on record where its beginning could not.
TEST_F(RequestServiceTest, WhatIsRefusedIsNeverOnRecordHoweverSoonItEnds) {
  auto other = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(other);
  ASSERT_TRUE(
      other->execute("CREATE TRIGGER t BEFORE INSERT ON requests WHEN NEW.ended = 0 "
                     "BEGIN SELECT RAISE(ABORT, 'no'); END"));
  sandbox_.info_ = sandbox::SandboxFailure{.detail = "no socket"};
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      const std::string refused = co_await t.submit();
      EXPECT_EQ(refused, "not_stored");
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const auto list = co_await t.service_->list("", 10, kRoot);
      EXPECT_EQ(Json::parse(list->text())["requests"].size(), 0U);
    }
  };
  run(Body::run(*this));
  EXPECT_EQ(metrics_.text({}).find("agentd_requests_total{"), std::string::npos);
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

TEST_F(RequestServiceTest, AttemptsOfAnEarlierRecordHaveAnOutcomeToo) {
  auto database = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "INSERT INTO requests(id, created_ms, owner, ended, summary, record, events, artifact_bytes)"
      " VALUES('rq_code', 1, 7, 1, '{}', '{\"mode\":\"code\",\"attempts\":["
      "{\"class\":\"runtime\",\"run\":{}},{\"class\":null,\"run\":{}},"
      "{\"class\":null,\"run\":null},{\"outcome\":\"cancelled\",\"class\":null}]}', '[]', 0),"
      " ('rq_tools', 1, 7, 1, '{}', '{\"mode\":\"tools\",\"attempts\":[{\"class\":null}]}',"
      " '[]', 0)"));
  struct Body {
    static Task<std::string> outcomes_of(RequestServiceTest& t, std::string id) {
      const auto record = co_await t.service_->record(std::move(id), kSeven);
      std::string words;
      if (!record) co_return words;
      const Json json = Json::parse(record->text());
      for (const Json& each : json["attempts"]) words += each.value("outcome", "none") + " ";
      co_return words;
    }
    static Task<void> run(RequestServiceTest& t) {
      std::string outcomes = co_await outcomes_of(t, "rq_code");
      EXPECT_EQ(outcomes, "failed passed not_run cancelled ");
      outcomes = co_await outcomes_of(t, "rq_tools");
      EXPECT_EQ(outcomes, "done ");
    }
  };
  run(Body::run(*this));
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

}  // namespace
}  // namespace agentd::service
