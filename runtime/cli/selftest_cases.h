// The attacks of `sbx-run selftest`, which the adversarial tests use too: what is tried, what the
// sandbox must answer, what shows that the try is a real one. Stage: edge (sbx-run). Tables and
// their judgement; runs nothing.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collect/outcome.h"
#include "runtime/policy/seccomp.h"

namespace sbx::cli {

// How one act of sbx-probe ended, inside or outside.
struct Observation {
  bool answered = false;             // the probe came back and said how the kernel answered
  int sys_errno = 0;                 // with answered; 0: the act succeeded
  std::string value;                 // with answered, for acts that look
  std::string hostile_syscall;       // inside: the run was ended for this call
  std::vector<std::string> denied;   // inside: calls that were answered with an errno and counted
  std::vector<std::string> lacking;  // inside: layers that this run did not fully hold
  std::string trouble;               // neither: why not
};

// What must be seen inside: the run ended for the call, where one is named; else one of the others.
struct Expectation {
  std::string_view hostile_syscall;  // the run ends with verdict security for this call
  bool (*looks_right)(std::string_view) = nullptr;  // the act succeeds and this holds for its value
  std::array<int, 3> errnos{};                      // the act fails with one of these
  std::string_view counted_syscall;                 // and this call is among the counted denials
};

enum class AttackClass {
  kSystemCalls,
  kViews,
  kNetwork,
  kSettingUp,
  // Of whole runs (selftest_run_cases.h).
  kFilesOut,
  kKilling,
  kMemory,
};
[[nodiscard]] std::string_view attack_class_name(AttackClass attack_class);

// Where the same act is done without the sandbox. No control changes the host.
enum class Control {
  kThrowAway,  // as nobody in particular in fresh user, mount, net, ipc and uts namespaces, root
               // there, with everything routed to a loopback, and a tmpfs over /etc
  kPlain,      // as the caller
  kRoot,       // as the caller, who must be root; else not applicable
};

struct AttackCase {
  AttackClass attack_class;
  std::string_view name;
  std::string_view layer;     // which layer answers first; "-" for what is no layer
  std::string_view act;       // of sbx-probe
  std::string_view argument;  // may hold what the control prepared: "@canary", … (ControlGround)
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
// A policy may answer otherwise than the default one, which the tables are written for: the act was
// stopped too where its call, or one that it takes, was denied with the errno that this policy
// gives for it, or where the run was ended for it.
[[nodiscard]] bool stopped_by_policy(const AttackCase& attack, const Observation& seen,
                                     const policy::SeccompPolicy& policy);
// `control` is none where it does not apply (kRoot for an ordinary user). Where the host does not
// have the facility, or not the optional layer, the case is not applicable; an act that succeeded
// inside fails in any case. `policy`: that of the run, where it may not be the default one.
[[nodiscard]] CaseState judge(const AttackCase& attack, const Observation& inside,
                              const std::optional<Observation>& control,
                              const policy::SeccompPolicy* policy = nullptr);
// For the table: "EPERM", "ended for mount", the value.
[[nodiscard]] std::string describe(const Observation& seen);

}  // namespace sbx::cli
