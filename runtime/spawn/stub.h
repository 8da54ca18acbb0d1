// The dozen lines between clone3 and the exec of sbx-init. Stage: spawn, in the cloned child.
#pragma once

#include "runtime/spawn/launch.h"

namespace sbx::spawn {

struct StubArguments {
  int init;
  const InitDescriptors* descriptors;
};

// SECURITY: shares the spawner's memory. Raw system calls only; writes to nothing but its own
// stack.
[[noreturn]] void run_stub(const StubArguments& arguments);

}  // namespace sbx::spawn
