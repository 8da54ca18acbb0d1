// Whether the sandbox answers, with one that hangs.
#include "agentd/sandbox/watch.h"

#include <gtest/gtest.h>

#include <string>

#include "http/async/task_group.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::sandbox {
namespace {

using sbx::async::Task;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Answers at once, or, while it hangs, when it is let go.
class HangingSandbox final : public Sandbox {
 public:
  explicit HangingSandbox(sbx::async::Loop& loop) : changed_(loop) {}
  Task<RunOutcome> run(RunRequest /*none*/, const sbx::async::Cancellation* /*none*/) override {
    co_return RunOutcome{SandboxFailure{}};
  }
  Task<InfoOutcome> info(const sbx::async::Cancellation* /*none*/) override {
    ++asked;
    while (hangs_) (void)co_await changed_.wait();
    co_return std::make_shared<const SandboxInfo>(SandboxInfo{.version = "1"});
  }
  void hang() { hangs_ = true; }
  void go_on() {
    hangs_ = false;
    changed_.notify_all();
  }
  int asked = 0;

 private:
  bool hangs_ = false;
  sbx::async::Event changed_;
};

std::string kind_of(const InfoOutcome& outcome) {
  const auto* failure = std::get_if<SandboxFailure>(&outcome);
  return failure == nullptr ? "ok" : std::string(to_string(failure->kind));
}

class SandboxWatchTest : public ::testing::Test {
 public:  // for the coroutines that are the tests
  sbx::async::Loop loop_;
  HangingSandbox sandbox_{loop_};
};

TEST_F(SandboxWatchTest, OneThatHangsIsToldAndHoldsNobodyUp) {
  struct Body {
    static Task<void> run(SandboxWatchTest& t) {
      SandboxWatch watch(t.loop_, t.sandbox_, {.fresh = milliseconds(0), .wait = milliseconds(50)});
      auto state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "ok");
      t.sandbox_.hang();
      const auto begin = steady_clock::now();
      state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "silent");
      EXPECT_GE(steady_clock::now() - begin, milliseconds(50));
      EXPECT_FALSE(std::get<SandboxFailure>(state).fix.empty());
      state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "silent");
      EXPECT_EQ(t.sandbox_.asked, 2) << "one look at a time";
      t.sandbox_.go_on();
      do {
        (void)co_await t.loop_.sleep_until(sbx::async::after(milliseconds(1)));
        state = co_await watch.state(nullptr);
      } while (kind_of(state) == "silent");
      EXPECT_EQ(kind_of(state), "ok");
    }
  };
  sbx::async::test::run_on(loop_, Body::run(*this));
}

TEST_F(SandboxWatchTest, WhatWasSeenJustNowIsNotLookedForAgain) {
  struct Body {
    static Task<void> run(SandboxWatchTest& t) {
      SandboxWatch watch(t.loop_, t.sandbox_, {.fresh = milliseconds(60'000)});
      for (int i = 0; i < 3; ++i) {
        const auto state = co_await watch.state(nullptr);
        EXPECT_EQ(kind_of(state), "ok");
      }
      EXPECT_EQ(t.sandbox_.asked, 1);
      watch.doubt();
      for (int i = 0; i < 3; ++i) (void)co_await watch.state(nullptr);
      EXPECT_EQ(t.sandbox_.asked, 2) << "somebody had no answer since";
    }
  };
  sbx::async::test::run_on(loop_, Body::run(*this));
}

TEST_F(SandboxWatchTest, AnAnswerThatWasAskedForBeforeADoubtIsLookedForAgain) {
  struct Body {
    static Task<void> run(SandboxWatchTest& t) {
      SandboxWatch watch(t.loop_, t.sandbox_,
                         {.fresh = milliseconds(60'000), .wait = milliseconds(50)});
      t.sandbox_.hang();
      auto state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "silent");
      watch.doubt();
      t.sandbox_.go_on();
      for (int i = 0; i < 3; ++i) (void)co_await t.loop_.next_turn();
      EXPECT_EQ(t.sandbox_.asked, 1);
      t.sandbox_.hang();
      state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "silent");
      EXPECT_EQ(t.sandbox_.asked, 2);
      t.sandbox_.go_on();
    }
  };
  sbx::async::test::run_on(loop_, Body::run(*this));
}

TEST_F(SandboxWatchTest, WhoLeavesDoesNotEndTheLookOfOthers) {
  struct Body {
    static Task<void> run(SandboxWatchTest& t) {
      SandboxWatch watch(t.loop_, t.sandbox_, {.wait = milliseconds(60'000)});
      t.sandbox_.hang();
      sbx::async::Cancellation gone;
      gone.cancel();
      auto state = co_await watch.state(&gone);
      EXPECT_EQ(kind_of(state), "cancelled");
      t.sandbox_.go_on();
      state = co_await watch.state(nullptr);
      EXPECT_EQ(kind_of(state), "ok");
      EXPECT_EQ(t.sandbox_.asked, 1);
    }
  };
  sbx::async::test::run_on(loop_, Body::run(*this));
}

TEST_F(SandboxWatchTest, WhoWaitedForALookDoesNotWaitForTheNext) {
  struct Body {
    static Task<void> ask(SandboxWatch& watch, std::string& kind) {
      const auto state = co_await watch.state(nullptr);
      kind = kind_of(state);
    }
    static Task<void> ask_twice(SandboxWatchTest& t, SandboxWatch& watch, std::string& kind) {
      co_await ask(watch, kind);
      t.sandbox_.hang();
      co_await ask(watch, kind);
    }
    static Task<void> run(SandboxWatchTest& t) {
      SandboxWatch watch(t.loop_, t.sandbox_, {.fresh = milliseconds(0), .wait = milliseconds(50)});
      std::string first;
      std::string second;
      sbx::async::TaskGroup tasks(t.loop_);
      t.sandbox_.hang();
      tasks.spawn(ask_twice(t, watch, first));
      tasks.spawn(ask(watch, second));
      while (t.sandbox_.asked == 0) (void)co_await t.loop_.next_turn();
      (void)co_await t.loop_.next_turn();
      t.sandbox_.go_on();
      while (first != "silent") {
        (void)co_await t.loop_.sleep_until(sbx::async::after(milliseconds(1)));
      }
      EXPECT_EQ(second, "ok");
      EXPECT_EQ(t.sandbox_.asked, 2);
      t.sandbox_.go_on();
    }
  };
  sbx::async::test::run_on(loop_, Body::run(*this));
}

}  // namespace
}  // namespace agentd::sandbox
