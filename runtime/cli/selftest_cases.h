// The attacks of `sbx-run selftest`: what is tried, what the sandbox must answer, what shows that
// the try is a real one. Stage: edge (sbx-run). A table and its judgement; runs nothing.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collect/outcome.h"

namespace sbx::cli {

// How one act of sbx-probe ended, inside or outside.
struct Observation {
  bool answered = false;            // the probe came back and said how the kernel answered
  int sys_errno = 0;                // with answered; 0: the act succeeded
  std::string value;                // with answered, for acts that look
  std::string hostile_syscall;      // inside: the run was ended for this call
  std::vector<std::string> denied;  // inside: calls that were answered with an errno and counted
  std::string trouble;              // neither: why not
};

// What must be seen inside: the run ended for the call, where one is named; else one of the others.
struct Expectation {
  std::string_view hostile_syscall;  // the run ends with verdict security for this call
  bool (*looks_right)(std::string_view) = nullptr;  // the act succeeds and this holds for its value
  std::array<int, 3> errnos{};                      // the act fails with one of these
};

// Where the same act is done without the sandbox. No control changes the host.
enum class Control {
  kThrowAway,  // fresh user, mount, net, ipc and uts namespaces, root in them, with a route and a
               // tmpfs over /etc
  kPlain,      // as the caller
  kRoot,       // as the caller, who must be root; else not applicable
};

struct AttackCase {
  std::string_view name;
  std::string_view layer;     // which layer answers; "-" for what is no layer
  std::string_view act;       // of sbx-probe
  std::string_view argument;  // "@canary", "@node", "@socket" stand for what the control prepared
  std::string_view control_argument;
  Expectation expected;
  Control control = Control::kPlain;
  int absent_errno = 0;         // the control's answer on a host that does not have the facility
  bool host_may_match = false;  // the caller may be confined alike: then not applicable
};

[[nodiscard]] std::span<const AttackCase> attack_cases();

enum class CaseState { kPass, kFail, kNotApplicable, kControlFailed };
[[nodiscard]] std::string_view case_state_name(CaseState state);

// What a run of sbx-probe came to. A run that ended by a limit, a signal or a failure says nothing
// of the act: that is trouble, never a denial.
[[nodiscard]] Observation observe(const collect::Outcome& outcome);
// One line of sbx-probe's output. `answered` is false when it is not one.
[[nodiscard]] Observation parse_probe_line(std::string_view line);

[[nodiscard]] bool matches(const Expectation& expected, const Observation& seen);
// `control` is none where it does not apply (kRoot for an ordinary user).
[[nodiscard]] CaseState judge(const AttackCase& attack, const Observation& inside,
                              const std::optional<Observation>& control);
// For the table: "errno EPERM", "ended for mount", "value …".
[[nodiscard]] std::string describe(const Observation& seen);

}  // namespace sbx::cli
