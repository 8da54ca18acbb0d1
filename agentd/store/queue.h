// Queue: the one thread that SQLite and the files beside it are for, so that the loop never waits
// for a disk.
//
// Its functions are called on the loop; the jobs run on the thread, one after another in the order
// in which they were given. Writes that wait together become one transaction, with those that are
// given before it is committed: a page that several of them change is written once, and the loop is
// woken once. So the thread is woken when the loop's turn is over; before that it could only take
// the processor from it, where they share one. What a job gave is told only when it is committed.
// When one of them fails, or the commit does, all are rolled back and each is run again in a
// transaction of its own, so that none fails for another's sake; one that was alone too, which may
// then wait twice for another program that holds the file.
//
// A job owns its data (captures by value, or references to what outlives the Queue), as its
// awaiting coroutine may be destroyed before it runs. It must not throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "agentd/store/database.h"
#include "http/async/event.h"
#include "http/async/loop.h"
#include "http/async/task.h"

namespace agentd::store {

class Queue {
 public:
  // `loop` is borrowed and outlives it; the database is the one that writes are for.
  Queue(sbx::async::Loop& loop, Database database);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  // Blocks until the jobs that were given have run, also those of which the thread was not told
  // yet.
  ~Queue();

  // A job with one transaction at most (in_transaction) and nothing else that cannot be undone: it
  // may run a second time after it was rolled back. It gives a Result. Moves from `job`, as
  // WorkPool::run() does, which says why. `durability` is what the job asks for in its transaction.
  template <typename Job>
  [[nodiscard]] sbx::async::Task<std::invoke_result_t<Job&>> write(
      Job& job, Durability durability = Durability::kProcess) {
    return wait_for(std::move(job), Kind::kWrite, durability);
  }
  // The same without being waited for. What is given later comes after it. `done` gets what it
  // gave, on the loop.
  template <typename Job, typename Done>
  void give(Job job, Done done) {
    using R = std::invoke_result_t<Job&>;
    auto result = std::make_shared<std::optional<R>>();  // of both functions
    std::function<bool()> work = [job = std::move(job), result]() mutable {
      result->emplace(job());
      return (*result)->has_value();
    };
    std::function<void()> finish = [done = std::move(done), result]() mutable {
      done(std::move(**result));
    };
    add({Kind::kWrite, Durability::kProcess, std::move(work), std::move(finish)});
  }
  // Any other job (reads, files): runs once, in no transaction.
  template <typename Job>
  [[nodiscard]] sbx::async::Task<std::invoke_result_t<Job&>> run(Job& job) {
    return wait_for(std::move(job), Kind::kOther, Durability::kProcess);
  }

 private:
  enum class Kind : std::uint8_t { kWrite, kOther };
  struct Job {
    Kind kind = Kind::kOther;
    Durability durability = Durability::kProcess;
    std::function<bool()> work;    // on the thread; false: it failed
    std::function<void()> finish;  // on the loop
  };
  struct State;

  template <typename F>
  [[nodiscard]] sbx::async::Task<std::invoke_result_t<F&>> wait_for(F job, Kind kind,
                                                                    Durability durability) {
    using R = std::invoke_result_t<F&>;
    struct Shared {
      Shared(sbx::async::Loop& loop, F&& f) : done(loop), job(std::move(f)) {}
      sbx::async::Event done;
      F job;
      bool finished = false;
      std::optional<R> result;
    };
    // The second owner is the job in the queue, which may outlive this coroutine.
    auto shared = std::make_shared<Shared>(loop_, std::move(job));
    std::function<bool()> work = [shared] {
      shared->result.emplace(shared->job());
      if constexpr (requires { shared->result->error(); }) return shared->result->has_value();
      return true;
    };
    std::function<void()> finish = [shared] {
      shared->finished = true;
      shared->done.notify_all();
    };
    add({kind, durability, std::move(work), std::move(finish)});
    while (!shared->finished) (void)co_await shared->done.wait();
    co_return std::move(*shared->result);
  }

  void add(Job job);

  sbx::async::Loop& loop_;
  std::shared_ptr<State> state_;  // shared with nobody; what the loop is to do may outlive it
};

}  // namespace agentd::store
