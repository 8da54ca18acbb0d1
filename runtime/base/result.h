// Result<T>: a value or an Error, with the names of std::expected (which C++20 does not have).
//
// Part of every stage; no allocation of its own beyond what T and Error do. Functions that can fail
// return `[[nodiscard]] Result<T>`; context is added on the way up with `Error::with_context`, and
// only an edge (a CLI verb, an HTTP route) renders it.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace sbx {

// What a caller may branch on. Anything finer is text.
enum class ErrorCode {
  kInvalid,   // what the caller asked for is wrong: sbx-run exits 2
  kHost,      // the host lacks something that is needed: exit 125, with the fix
  kInternal,  // our own machinery failed: exit 125
};

// One failure. `operation` names the call or check that failed ("mount_setattr"), `sys_errno` is
// its errno or 0, `detail` says what it was about, `fix` what the reader can do (one line or
// empty).
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string stage;
  std::string operation;
  int sys_errno = 0;
  std::string detail;
  std::string fix;

  // Puts `context` in front of the detail: "profile x.toml: bad size".
  [[nodiscard]] Error with_context(const std::string& context) && {
    detail = detail.empty() ? context : context + ": " + detail;
    return std::move(*this);
  }
};

// "stage: operation: detail: strerror". The fix is not part of it: edges print it on its own line.
[[nodiscard]] std::string to_string(const Error& error);

// The three ways to make one. `sys_error` captures errno at once.
[[nodiscard]] Error invalid(std::string detail, std::string fix = {});
[[nodiscard]] Error host_lacks(std::string operation, int sys_errno, std::string detail,
                               std::string fix);
[[nodiscard]] Error sys_error(std::string operation, std::string detail = {});

// Tells Result's constructors that an Error is meant.
struct Unexpected {
  Error error;
};
[[nodiscard]] inline Unexpected unexpected(Error error) {
  return {std::move(error)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: as expected's
  Result(Unexpected failure)                                             // NOLINT: as expected's
      : state_(std::in_place_index<1>, std::move(failure.error)) {}
  Result(Error failure)  // NOLINT: lets `return sys_error(...)` read as it should
      : state_(std::in_place_index<1>, std::move(failure)) {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Precondition of the four: has_value(). std::get throws otherwise, which is a broken invariant.
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  // Precondition: !has_value().
  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Unexpected failure) : error_(std::move(failure.error)), failed_(true) {}  // NOLINT
  Result(Error failure) : error_(std::move(failure)), failed_(true) {}             // NOLINT

  [[nodiscard]] bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] Error& error() & { return error_; }
  [[nodiscard]] const Error& error() const& { return error_; }
  [[nodiscard]] Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace sbx

// Returns the error of `expr` from the enclosing function, or goes on. The one control macro here.
#define SBX_TRY(expr)                                              \
  do {                                                             \
    if (auto sbx_try_result = (expr); !sbx_try_result) {           \
      return ::sbx::unexpected(std::move(sbx_try_result).error()); \
    }                                                              \
  } while (false)

#define SBX_CONCAT_INNER(a, b) a##b
#define SBX_CONCAT(a, b) SBX_CONCAT_INNER(a, b)
// `SBX_ASSIGN(auto fd, open_thing());`: the value, or the error returned from here.
#define SBX_ASSIGN(decl, expr)                                                      \
  auto SBX_CONCAT(sbx_assign_, __LINE__) = (expr);                                  \
  if (!SBX_CONCAT(sbx_assign_, __LINE__)) {                                         \
    return ::sbx::unexpected(std::move(SBX_CONCAT(sbx_assign_, __LINE__)).error()); \
  }                                                                                 \
  decl = *std::move(SBX_CONCAT(sbx_assign_, __LINE__))
