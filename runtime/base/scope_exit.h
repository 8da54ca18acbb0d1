// ScopeExit: runs a callable when the scope is left, unless released.
#pragma once

#include <utility>

namespace sbx {

template <typename F>
class [[nodiscard]] ScopeExit {
 public:
  explicit ScopeExit(F action) : action_(std::move(action)) {}
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;
  ~ScopeExit() {
    if (armed_) action_();
  }
  void release() { armed_ = false; }

 private:
  F action_;
  bool armed_ = true;
};

}  // namespace sbx
