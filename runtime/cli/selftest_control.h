// The control side of selftest: the same acts without the sandbox. Stage: edge (sbx-run).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/cli/selftest_cases.h"

namespace sbx::cli {

// What attacks look for: a file of the caller's, an abstract socket that listens, a place for a
// node. Owns them; gone with it.
class ControlGround {
 public:
  [[nodiscard]] static Result<ControlGround> prepare();
  ControlGround(ControlGround&&) noexcept = default;
  ControlGround& operator=(ControlGround&&) = delete;
  ~ControlGround();

  // "@canary" and the like resolved; anything else as it is.
  [[nodiscard]] std::string resolve(std::string_view argument) const;

 private:
  explicit ControlGround(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
  std::string socket_name_;
  UniqueFd socket_;
};

// None where the control does not apply to this caller. Blocking; at most 10 seconds.
[[nodiscard]] std::optional<Observation> run_control(const AttackCase& attack,
                                                     const ControlGround& ground);

}  // namespace sbx::cli
