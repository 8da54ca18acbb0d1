// Task<T>: a coroutine that starts when it is awaited and hands its value to the one who awaits it.
//
// Used by everything that runs on a Loop (loop.h): the server, the client, the daemons. A Task owns
// its frame: destroying it while it is suspended destroys the frame and all it awaits, innermost
// first, so destructors run and nothing resumes later. Belongs to the loop's thread.
//
// Rules for coroutines here: parameters by value, or references to what the awaiter owns; no
// capturing lambda as a coroutine; `co_await` in a statement of its own, and nothing in that
// statement that is made of braces (an aggregate, a lambda): g++ 12 destroys such temporaries
// twice. Give them a name in a statement before. A test checks (tests/meta/coroutines.py).
//
// An exception that leaves a coroutine comes out of the `co_await` on it. Ours do not throw; the
// server turns what escapes a handler into a 500, and a TaskGroup ends the program.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace sbx::async {

template <typename T = void>
class Task;

namespace detail {

class PromiseBase {
 public:
  // Resumes whoever awaits, unless he is still in await_suspend and will see done() himself.
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      const auto next = ended.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }

  std::coroutine_handle<> continuation;
  std::exception_ptr exception;
};

template <typename T>
class Promise final : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <typename U>
  void return_value(U&& from) {
    value.emplace(std::forward<U>(from));
  }
  T take() { return std::move(*value); }

 private:
  std::optional<T> value;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() noexcept {}
};

}  // namespace detail

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle frame) noexcept : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Task& operator=(Task&&) = delete;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  // Awaited once, by one coroutine.
  bool await_ready() noexcept { return false; }
  // Not by symmetric transfer: a task that ends without suspending must not cost stack, also where
  // the compiler makes no tail calls (-O0, sanitizers).
  bool await_suspend(std::coroutine_handle<> awaiting) {
    frame_.resume();
    if (frame_.done()) return false;
    frame_.promise().continuation = awaiting;
    return true;
  }
  T await_resume() {
    if (frame_.promise().exception) std::rethrow_exception(frame_.promise().exception);
    return frame_.promise().take();
  }

 private:
  Handle frame_;
};

template <typename T>
Task<T> detail::Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Task<void> detail::Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

}  // namespace sbx::async
