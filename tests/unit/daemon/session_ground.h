// Sessions on a store of their own, with a loop, a pool and a clock of the test's.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "http/async/loop.h"
#include "http/async/work_pool.h"
#include "runtime/daemon/sessions.h"
#include "tests/support/process.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::test {

// Lets everything else on the loop get as far as it can without a pool or a clock.
inline async::Task<void> turns(async::Loop& loop) {
  for (int turn = 0; turn < 10; ++turn) {
    async::Event next(loop);
    loop.post([&next] { next.notify_all(); });
    (void)co_await next.wait(async::test::soon());
  }
}

class SessionGround {
 public:
  static constexpr std::chrono::seconds kStart{1'700'000'000};

  explicit SessionGround(daemon::SessionBounds bounds = {}) : bounds_(bounds) { start(); }

  // A new daemon on the same directory, as after a SIGKILL: nothing is told to the old one.
  void start() {
    sessions_.reset();
    auto store = daemon::SessionStore::open(directory_.path());
    ASSERT_TRUE(store) << to_string(store.error());
    sessions_.emplace(
        loop, pool_, pool_, *std::move(store), bounds_,
        [this](std::uint32_t wanted) { return lease(wanted); }, [this] { return now; });
    const auto loaded = sessions_->load();
    ASSERT_TRUE(loaded) << to_string(loaded.error());
  }

  // As after a restart with another configuration.
  void start(daemon::SessionBounds bounds) {
    bounds_ = bounds;
    start();
  }

  // Runs a coroutine, and what it has left to be done, to the end.
  void run(async::Task<void> task) {
    async::test::run_on(loop, settle(std::move(task), *sessions_));
  }
  template <typename T>
  T result(async::Task<T> task) {
    std::optional<T> value;
    run(keep(std::move(task), value));
    return *std::move(value);
  }

  [[nodiscard]] daemon::Sessions& sessions() { return *sessions_; }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  static http::Peer peer(uid_t uid) { return {.uid = uid, .gid = uid, .pid = 1}; }

  daemon::SessionPtr create(uid_t uid = 1000, std::chrono::seconds idle = std::chrono::hours(1),
                            std::chrono::seconds age = std::chrono::hours(24)) {
    daemon::SessionWish wish{.work = 1U << 20, .work_inodes = 50, .idle = idle, .age = age};
    auto made = result(sessions_->create(peer(uid), wish));
    EXPECT_TRUE(std::holds_alternative<daemon::SessionPtr>(made));
    return std::holds_alternative<daemon::SessionPtr>(made) ? std::get<daemon::SessionPtr>(made)
                                                            : nullptr;
  }
  // The problem's code, "" for a session.
  [[nodiscard]] std::string find(uid_t uid, const std::string& id) {
    const auto found = sessions_->find(peer(uid), id);
    const auto* problem = std::get_if<http::Problem>(&found);
    return problem != nullptr ? problem->code : "";
  }

  async::Loop loop;
  daemon::SessionTime now{kStart};
  bool ids_left = true;

 private:
  Result<SessionId> lease(std::uint32_t wanted) const {
    if (!ids_left) return host_lacks("lease", 0, "all ids are in use", "");
    return SessionId{wanted, {}};
  }
  static async::Task<void> settle(async::Task<void> task, daemon::Sessions& sessions) {
    co_await task;
    (void)co_await sessions.tasks().join(async::test::soon());
  }
  template <typename T>
  static async::Task<void> keep(async::Task<T> task, std::optional<T>& to) {
    to.emplace(co_await task);
  }

  daemon::SessionBounds bounds_;
  TemporaryDirectory directory_;
  async::WorkPool pool_{loop, 2};
  std::optional<daemon::Sessions> sessions_;
};

}  // namespace sbx::test
