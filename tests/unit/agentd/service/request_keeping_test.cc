// What the disk does not take of requests and their files, and what becomes of it.
#include <filesystem>

#include "tests/unit/agentd/service/service_fixture.h"

namespace agentd::service {
namespace {

class RequestKeeping : public RequestServiceTest {
 protected:
  // The next result has a file, and the directory that it would be kept in is gone.
  std::string lose_place_of_files() {
    sandbox::RunResult result = test::ok_run(R"({"type":"file","artifact_path":"/output/a.csv"})");
    result.files = {{.path = "a.csv", .size = 1, .content = "x"}};
    answer_ = result;
    std::string place = ledger_.directory.path() + "/artifacts";
    std::filesystem::remove(place);
    return place;
  }
};

TEST_F(RequestKeeping, AResultWhoseFilesCannotBeStoredIsNoSuccess) {
  reset({.retry_every = std::chrono::milliseconds(1),
         .files_patience = std::chrono::milliseconds(0)});
  const std::string place = lose_place_of_files();
  struct Body {
    static Task<void> run(RequestServiceTest& t, const std::string& place) {
      t.provider_.open();
      const std::string id = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const auto record = co_await t.service_->record(id, kSeven);
      const Json json = Json::parse(record->text());
      EXPECT_EQ(json["state"], "failed");
      EXPECT_EQ(json["reason"]["code"], "internal");
      EXPECT_NE(
          json["reason"]["text"].get<std::string>().find("could not be stored: mkdir: " + place),
          std::string::npos);
      EXPECT_NE(json["reason"]["text"].get<std::string>().find("No such file"), std::string::npos);
      EXPECT_EQ(json["artifacts"], Json::array());
      EXPECT_GT(json["tokens"], 0) << "what it cost stays on record";
      const auto events = co_await t.service_->stored_events(id, kSeven);
      EXPECT_EQ(Json::parse(events->text()).back()["data"]["state"], "failed");
      EXPECT_FALSE(t.service_->stores());
      std::filesystem::create_directory(place);
      sbx::async::TaskGroup tasks(t.loop_);
      tasks.spawn(t.service_->tend(t.ledger_.ledger));
      while (!t.service_->stores()) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      EXPECT_TRUE(std::filesystem::is_empty(place)) << "without another request's files";
    }
  };
  run(Body::run(*this, place));
}

TEST_F(RequestKeeping, ARecordThatCouldNotBeStoredIsKeptAndStoredLater) {
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

TEST_F(RequestKeeping, WhileThePlaceIsGoneNothingIsTakenAndTheLoopIsFreeForOthers) {
  reset({.tend_every = std::chrono::milliseconds(1), .retry_every = std::chrono::milliseconds(1)});
  struct Body {
    static Task<void> run(RequestServiceTest& t) {
      sbx::async::TaskGroup tasks(t.loop_);
      tasks.spawn(t.service_->tend(t.ledger_.ledger));
      t.place_is_there_ = false;
      while (t.service_->stores()) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      for (int i = 0; i < 10; ++i) {  // it is due more than once
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      const std::string refused = co_await t.submit();
      EXPECT_EQ(refused, "not_stored");
      const auto idle = co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_EQ(idle, sbx::async::Wake::kReady);
      t.place_is_there_ = true;
      while (!t.service_->stores()) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      t.provider_.open();
      const std::string id = co_await t.submit();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "succeeded");
    }
  };
  run(Body::run(*this));
}

TEST_F(RequestKeeping, FilesOfAResultWaitAWhileForRoom) {
  reset({.retry_every = std::chrono::milliseconds(1),
         .files_patience = std::chrono::milliseconds(60'000)});
  const std::string place = lose_place_of_files();
  struct Body {
    static Task<void> run(RequestServiceTest& t, const std::string& place) {
      t.provider_.open();
      const std::string id = co_await t.submit();
      while (t.service_->stores()) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      std::filesystem::create_directory(place);
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const std::string state = co_await t.state_of(id);
      EXPECT_EQ(state, "succeeded");
      EXPECT_TRUE(t.service_->stores());
      const auto file = co_await t.service_->artifact(id, "a.csv", kSeven);
      EXPECT_TRUE(file);
    }
  };
  run(Body::run(*this, place));
}

TEST_F(RequestKeeping, WhatCouldNotBeStoredIsStoredWithTheNextSuccessOrAtTheEnd) {
  reset({.retry_every = std::chrono::milliseconds(4)});
  auto other = store::Database::open({.path = ledger_.directory.path() + "/agentd.db"});
  ASSERT_TRUE(other);
  struct Body {
    static Task<std::string> lose(RequestServiceTest& t, store::Database& other) {
      std::string id = co_await t.submit();
      co_await t.provider_.until_waiting(1);
      EXPECT_TRUE(other.execute("ALTER TABLE requests RENAME TO away"));
      t.provider_.let_through = t.provider_.asked;
      t.provider_.look();
      (void)co_await t.service_->idle(sbx::async::test::soon());
      EXPECT_EQ(t.service_->unsaved(), 1U);
      EXPECT_FALSE(t.service_->stores());
      co_return id;
    }
    static Task<void> run(RequestServiceTest& t, store::Database& other) {
      const std::string first = co_await lose(t, other);
      bool stored = co_await t.service_->store_the_rest(sbx::async::after(std::chrono::seconds(0)));
      EXPECT_FALSE(stored);
      EXPECT_TRUE(other.execute("ALTER TABLE away RENAME TO requests"));
      const std::string second = co_await t.submit();
      while (t.service_->unsaved() > 0) {
        (void)co_await t.loop_.sleep_until(sbx::async::after(std::chrono::milliseconds(1)));
      }
      EXPECT_TRUE((*t.history_.find(first))->ended);
      (void)co_await t.service_->cancel(second, kSeven);
      (void)co_await t.service_->idle(sbx::async::test::soon());
      const std::string third = co_await lose(t, other);
      EXPECT_TRUE(other.execute("ALTER TABLE away RENAME TO requests"));
      stored = co_await t.service_->store_the_rest(sbx::async::test::soon());
      EXPECT_TRUE(stored);
      EXPECT_TRUE(t.service_->stores());
      EXPECT_TRUE((*t.history_.find(third))->ended);
    }
  };
  run(Body::run(*this, *other));
}

}  // namespace
}  // namespace agentd::service
