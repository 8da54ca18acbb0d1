#include "http/async/loop.h"

// Boost 1.74's Asio uses std::exchange without including it.
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace sbx::async {

namespace {
using ReadyList = detail::List<Wait, detail::ByReady>;
}

struct Loop::State {
  boost::asio::io_context io{1};  // one thread runs it: fewer locks
  boost::asio::steady_timer timer{io};
  Deadline armed = kNoDeadline;  // what `timer` waits for
  Wait::Timers timers;
  ReadyList ready;
  bool turn_posted = false;
};

Loop::Loop() : state_(std::make_unique<State>()) {}

Loop::~Loop() = default;

void Loop::run() {
  const auto stay = boost::asio::make_work_guard(state_->io);
  state_->io.restart();
  state_->io.run();
}

void Loop::stop() {
  state_->io.stop();
}

void Loop::post(std::function<void()> action) {
  boost::asio::post(state_->io, std::move(action));
}

boost::asio::io_context& Loop::io() {
  return state_->io;
}

Wait Loop::next_turn() {
  return {*this, Wait::NextTurn{}};
}

void Loop::queue(Wait& woken) {
  state_->ready.push_back(woken);
  if (std::exchange(state_->turn_posted, true)) return;
  boost::asio::post(state_->io, [this] { resume_ready(); });
}

// Those that become ready meanwhile are for the next turn, so that descriptors are looked at
// between.
void Loop::resume_ready() {
  state_->turn_posted = false;
  ReadyList turn;
  turn.take(state_->ready);
  while (!turn.empty()) {
    Wait& woken = turn.front();
    static_cast<detail::Link<detail::ByReady>&>(woken).unlink();
    woken.awaiting_.resume();
  }
}

void Loop::add_timer(Wait& wait) {
  wait.timer_ = state_->timers.emplace(wait.deadline_, &wait);
  wait.timed_ = true;
  if (wait.deadline_ < state_->armed) arm_timer();
}

// The one timer of Asio may fire for a deadline that is forgotten: it only looks again.
void Loop::forget_timer(Wait& wait) {
  state_->timers.erase(wait.timer_);
  wait.timed_ = false;
}

void Loop::arm_timer() {
  state_->armed = state_->timers.begin()->first;
  state_->timer.expires_at(state_->armed);
  state_->timer.async_wait([this](const boost::system::error_code& failure) {
    if (failure) return;  // armed anew for an earlier deadline
    expire();
  });
}

void Loop::expire() {
  const auto now = std::chrono::steady_clock::now();
  auto& timers = state_->timers;
  while (!timers.empty() && timers.begin()->first <= now) {
    timers.begin()->second->wake(Wake::kDeadline);
  }
  state_->armed = kNoDeadline;
  if (!timers.empty()) arm_timer();
}

}  // namespace sbx::async
