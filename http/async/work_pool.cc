#include "http/async/work_pool.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "http/async/loop.h"

namespace sbx::async {
namespace {

struct Job {
  std::function<void()> work;
  std::function<void()> finish;
};

}  // namespace

struct WorkPool::State {
  std::mutex mutex;
  std::condition_variable given;
  std::deque<Job> jobs;
  bool ending = false;
  std::vector<std::thread> threads;

  // nullopt: no more will come.
  std::optional<Job> next() {
    std::unique_lock lock(mutex);
    given.wait(lock, [this] { return ending || !jobs.empty(); });
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
};

WorkPool::WorkPool(Loop& loop, int threads) : loop_(loop), state_(std::make_unique<State>()) {
  // Signals are for the loop's thread, which reads them from a signalfd.
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < threads; ++i) {
    state_->threads.emplace_back([this] { state_->serve(loop_); });
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back({std::move(work), std::move(finish)});
  }
  state_->given.notify_one();
}

}  // namespace sbx::async
