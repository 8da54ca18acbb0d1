#include "agentd/store/queue.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/scope_exit.h"

namespace agentd::store {

struct Queue::State {
  State(sbx::async::Loop& its_loop, Database its_database)
      : loop(its_loop), database(std::move(its_database)) {}

  void serve();
  void run_all(std::vector<Job>& batch);
  void run_writes(std::span<Job> writes);
  [[nodiscard]] bool run_together(std::span<Job> writes);
  void tell(std::span<Job> jobs);

  sbx::async::Loop& loop;
  Database database;  // the thread's
  std::mutex mutex;
  std::condition_variable given;
  std::vector<Job> jobs;  // under the mutex, as the next
  bool ending = false;
  std::thread thread;
};

Queue::Queue(sbx::async::Loop& loop, Database database)
    : loop_(loop), state_(std::make_unique<State>(loop, std::move(database))) {
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
  state_->given.notify_one();
}

void Queue::State::serve() {
  for (;;) {
    std::vector<Job> batch;
    {
      std::unique_lock lock(mutex);
      given.wait(lock, [this] { return ending || !jobs.empty(); });
      if (jobs.empty()) return;
      batch.swap(jobs);
    }
    run_all(batch);
  }
}

void Queue::State::run_all(std::vector<Job>& batch) {
  for (std::span<Job> left = batch; !left.empty();) {
    const auto other = std::find_if(left.begin(), left.end(),
                                    [](const Job& job) { return job.kind == Kind::kOther; });
    auto now = left.first(static_cast<std::size_t>(other - left.begin()));
    if (now.empty()) {
      now = left.first(1);
      (void)now.front().work();
    } else {
      run_writes(now);
    }
    left = left.subspan(now.size());
    tell(now);
  }
}

void Queue::State::run_writes(std::span<Job> writes) {
  if (writes.size() > 1 && run_together(writes)) return;
  for (Job& job : writes) (void)job.work();  // whoever gave it is told how it went
}

// False: nothing of it was done.
bool Queue::State::run_together(std::span<Job> writes) {
  const bool durable = std::any_of(writes.begin(), writes.end(), [](const Job& job) {
    return job.durability == Durability::kPower;
  });
  if (!database.begin(durable ? Durability::kPower : Durability::kProcess)) return false;
  const bool all =
      std::all_of(writes.begin(), writes.end(), [](const Job& job) { return job.work(); });
  if (all && database.commit()) return true;
  database.rollback();
  return false;
}

// What a job holds is destroyed on the loop's thread, whose objects it refers to.
void Queue::State::tell(std::span<Job> done) {
  std::vector<Job> ended(std::move_iterator(done.begin()), std::move_iterator(done.end()));
  loop.post([ended = std::move(ended)] {
    for (const Job& job : ended) job.finish();
  });
}

}  // namespace agentd::store
