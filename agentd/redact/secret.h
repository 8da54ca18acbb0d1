// A secret of the daemon: a provider's key. Owned by who uses it; wiped when destroyed.
//
// SECURITY: it has no operator<<, no formatter and no implicit conversion, so that it reaches a
// log, an error or a body only where reveal() stands in the source.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace agentd::redact {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { wipe(); }

  [[nodiscard]] std::string_view reveal() const { return value_; }
  [[nodiscard]] bool empty() const { return value_.empty(); }

 private:
  void wipe();
  std::string value_;
};

}  // namespace agentd::redact
