// sbx-probe: does one act and says how the kernel answered. Runs inside a sandbox as the attacker,
// and outside in a throw-away namespace as the control. Static, no allocation, nothing but system
// calls.
#pragma once

#include <cerrno>
#include <cstddef>

namespace sbx::probe {

struct Answer {
  int error = 0;         // errno, 0 when the act succeeded
  char value[512] = {};  // what was seen, where seeing is the act
};

struct Act {
  const char* name;
  void (*run)(const char* argument, Answer& answer);  // argument is never null
};

// Acts that try to do something (acts.cc) and acts that look (looks.cc); each table ends with a
// null name.
extern const Act kActs[];
extern const Act kLooks[];

// Right after a call: `result` < 0 is a failure with errno.
inline void note(Answer& answer, long result) {
  answer.error = result < 0 ? errno : 0;
}

}  // namespace sbx::probe
