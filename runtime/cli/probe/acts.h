// sbx-probe: does one act and says how the kernel answered. Runs inside a sandbox as the attacker,
// and outside in a throw-away namespace as the control. Static, no allocation, nothing but system
// calls.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sbx::probe {

struct Answer {
  int error = 0;         // errno, 0 when the act succeeded
  char value[512] = {};  // what was seen, where seeing is the act
};

struct Act {
  const char* name;
  void (*run)(const char* argument, Answer& answer);  // argument is never null
};

// System calls that are made as they are (calls.cc): with arguments that reach the kernel's own
// check without effect, so that they can be tried outside too.
struct Call {
  const char* name;
  long number;  // -1: this architecture does not have it
  long arguments[6];
  int filtered = -1;  // the argument that gets bits above the low 32 when the probe's has "high"
  int target = -1;  // the argument that is a process: pid 1 when the probe's has "init", else none
};
extern const Call kCalls[];
void make_call(const Call& call, const char* argument, Answer& answer);

// Acts that try something (acts.cc, kernel.cc, network.cc, execution.cc) and acts that look
// (looks.cc, views.cc); acts that a whole run is judged by (deeds.cc, lingering.cc, plants.cc).
// Each table ends with a null name.
extern const Act kActs[];
extern const Act kKernel[];
extern const Act kNetwork[];
extern const Act kExecution[];
extern const Act kLooks[];
extern const Act kViews[];
extern const Act kDeeds[];
extern const Act kLingering[];
extern const Act kPlants[];

// Does the act of that name; false when there is none.
bool perform(const char* name, const char* argument, Answer& answer);

inline constexpr long kNoSuchPid = 0x3fffffff;  // above PID_MAX_LIMIT
inline constexpr unsigned long kHighBits = 0x1'0000'0000UL;

// Right after a call: `result` < 0 is a failure with errno.
inline void note(Answer& answer, long result) {
  answer.error = result < 0 ? errno : 0;
}

inline bool asks_for(const char* argument, const char* word) {
  return std::strstr(argument, word) != nullptr;
}

}  // namespace sbx::probe
