// Ceilings: the most that a client's run may have of each limit. Stage: daemon. Pure.
//
// What a profile brings is lowered to the ceiling; what a client names above it is refused. The
// result's `limits` say what was applied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/policy/config.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {

class Ceilings {
 public:
  // A ceiling of `name`, as text ("256M"). kInvalid as policy::set_limit.
  [[nodiscard]] Result<void> set(std::string_view name, std::string_view value);
  // The lower of what there is and `value` of `name` in `most`.
  void lower(std::string_view name, const policy::Limits& most);

  [[nodiscard]] bool has(std::string_view name) const;
  // In the order of the limits' table.
  [[nodiscard]] std::vector<std::string_view> names() const;
  // As text, for names that have one.
  [[nodiscard]] std::string text(std::string_view name) const;
  // All of them; what is not in names() means nothing.
  [[nodiscard]] const policy::Limits& most() const { return most_; }
  // True when `limits` ask for more of `name` than may be.
  [[nodiscard]] bool is_above(const policy::Limits& limits, std::string_view name) const;
  // Lowers everything in `limits` that is above.
  void apply(policy::Limits& limits) const;

  bool operator==(const Ceilings&) const = default;

 private:
  policy::Limits most_;
  std::vector<std::string> names_;
};

// Of a daemon whose config says nothing: what its own memory, its disk, the host's table of
// processes and its other clients depend on.
[[nodiscard]] Ceilings default_ceilings();
// kInvalid when `most` of a limit is less than what any run, also the first one at the start,
// needs.
[[nodiscard]] Result<void> check_least(const policy::Limits& most, std::string_view name);
// With runtime.toml's, and the host's (its memory no more than the budget) on top.
[[nodiscard]] Ceilings effective_ceilings(Ceilings configured, const policy::RuntimeConfig& config,
                                          const policy::HostBounds& host);

}  // namespace sbx::daemon
