#include "agentd/redact/secret.h"

#include <cstring>

namespace agentd::redact {

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) {
    wipe();
    value_ = other.value_;
  }
  return *this;
}

// A short string is copied by std::string's own move and stays behind: wipe what was moved from.
// NOLINTNEXTLINE(performance-move-constructor-init)
Secret::Secret(Secret&& other) noexcept : value_(other.value_) {
  other.wipe();
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    value_ = other.value_;
    other.wipe();
  }
  return *this;
}

void Secret::wipe() {
  ::explicit_bzero(value_.data(), value_.size());
  value_.clear();
}

}  // namespace agentd::redact
