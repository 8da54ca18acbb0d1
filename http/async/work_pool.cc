#include "http/async/work_pool.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "http/async/loop.h"
#include "runtime/base/scope_exit.h"

namespace sbx::async {
namespace {

struct Job {
  std::function<void()> work;
  std::function<void()> finish;
};

}  // namespace

struct WorkPool::State {
  explicit State(std::size_t most) : most_threads(most) {}

  const std::size_t most_threads;
  std::mutex mutex;
  std::condition_variable given;
  std::deque<Job> jobs;
  std::size_t idle = 0;  // threads that wait for a job, also those that are being woken for one
  bool ending = false;
  std::vector<std::thread> threads;  // the loop's thread makes and joins them

  // nullopt: no more will come.
  std::optional<Job> next() {
    std::unique_lock lock(mutex);
    ++idle;
    given.wait(lock, [this] { return ending || !jobs.empty(); });
    --idle;
    if (jobs.empty()) return std::nullopt;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  // What a job holds is destroyed on the loop's thread, whose objects it refers to.
  void serve(Loop& loop) {
    while (auto job = next()) {
      job->work();
      loop.post([done = std::move(*job)] { done.finish(); });
    }
  }

  // Signals are for the loop's thread, which reads them from a signalfd.
  void add_thread(Loop& loop) {
    sigset_t all;
    sigset_t before;
    (void)::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
    const ScopeExit restore([&] { (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr); });
    threads.emplace_back([this, &loop] { serve(loop); });
  }
};

WorkPool::WorkPool(Loop& loop, std::size_t most_threads)
    : loop_(loop), state_(std::make_unique<State>(most_threads)) {
  state_->add_thread(loop_);
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->given.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void WorkPool::submit(std::function<void()> work, std::function<void()> finish) {
  bool short_of_threads = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back({std::move(work), std::move(finish)});
    short_of_threads = state_->jobs.size() > state_->idle;
  }
  state_->given.notify_one();
  if (!short_of_threads || state_->threads.size() >= state_->most_threads) return;
  try {
    state_->add_thread(loop_);
  } catch (const std::system_error&) {
    // No further thread is to be had: those that are there come to the job in time.
  }
}

}  // namespace sbx::async
