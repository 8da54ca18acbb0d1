#include "agentd/store/queue.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/scope_exit.h"

namespace agentd::store {
namespace {

// Of one transaction: the first of them is told no sooner than the last.
constexpr std::size_t kMostWrites = 64;

}  // namespace

struct Queue::State {
  State(sbx::async::Loop& its_loop, Database its_database)
      : loop(its_loop), database(std::move(its_database)) {}

  void serve();
  [[nodiscard]] std::vector<Job> next();
  void take_writes(std::vector<Job>& to, Durability most);
  [[nodiscard]] bool run_together(std::vector<Job>& writes);
  void tell(std::vector<Job> done);

  sbx::async::Loop& loop;
  Database database;  // the thread's
  std::mutex mutex;
  std::condition_variable given;
  std::deque<Job> jobs;  // under the mutex, as the next
  bool ending = false;
  bool waking = false;  // the loop's: at the end of its turn
  std::thread thread;
};

Queue::Queue(sbx::async::Loop& loop, Database database)
    : loop_(loop), state_(std::make_shared<State>(loop, std::move(database))) {
  // Signals are for the loop's thread, which reads them from a signalfd.
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  const sbx::ScopeExit restore([&] { (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr); });
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

Queue::~Queue() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->given.notify_all();
  state_->thread.join();
}

void Queue::add(Job job) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  if (state_->waking) return;
  loop_.post([weak = std::weak_ptr(state_)] {
    const auto state = weak.lock();
    if (!state) return;  // the queue is gone
    state->waking = false;
    state->given.notify_one();
  });
  state_->waking = true;
}

void Queue::State::serve() {
  for (std::vector<Job> now = next(); !now.empty(); now = next()) {
    const bool done = now.front().kind == Kind::kWrite && run_together(now);
    if (!done) {  // whoever gave a job is told how it went
      for (Job& job : now) (void)job.work();
    }
    tell(std::move(now));
  }
}

// The writes that wait, or one other job. Empty: no more will come.
std::vector<Queue::Job> Queue::State::next() {
  std::unique_lock lock(mutex);
  given.wait(lock, [this] { return ending || !jobs.empty(); });
  std::vector<Job> now;
  if (!jobs.empty() && jobs.front().kind == Kind::kOther) {
    now.push_back(std::move(jobs.front()));
    jobs.pop_front();
  } else {
    take_writes(now, Durability::kPower);
  }
  return now;
}

// Those at the front that ask for no more than `most`. Under the mutex.
void Queue::State::take_writes(std::vector<Job>& to, Durability most) {
  while (!jobs.empty() && jobs.front().kind == Kind::kWrite && jobs.front().durability <= most &&
         to.size() < kMostWrites) {
    to.push_back(std::move(jobs.front()));
    jobs.pop_front();
  }
}

// Adds those that are given meanwhile. False: nothing was done of any of them.
bool Queue::State::run_together(std::vector<Job>& writes) {
  const bool durable = std::any_of(writes.begin(), writes.end(), [](const Job& job) {
    return job.durability == Durability::kPower;
  });
  const Durability durability = durable ? Durability::kPower : Durability::kProcess;
  if (!database.begin(durability)) return false;
  bool good = true;
  for (std::size_t i = 0; good && i < writes.size(); ++i) {
    good = writes[i].work();
    if (!good || i + 1 < writes.size()) continue;
    const std::lock_guard lock(mutex);
    take_writes(writes, durability);
  }
  if (good && database.commit()) return true;
  database.rollback();
  return false;
}

// What a job holds is destroyed on the loop's thread, whose objects it refers to.
void Queue::State::tell(std::vector<Job> done) {
  loop.post([done = std::move(done)] {
    for (const Job& job : done) job.finish();
  });
}

}  // namespace agentd::store
