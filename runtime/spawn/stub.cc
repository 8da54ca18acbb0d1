#include "runtime/spawn/stub.h"

#include "runtime/child/kernel.h"
#include "runtime/child/syscall.h"

namespace sbx::spawn {

void run_stub(const StubArguments& arguments) {
  using child::sys;
  for (int slot = 0; slot < plan::kSlotCount; ++slot) {
    const int fd = arguments.descriptors->slots[slot];
    if (fd < 0) {
      child::close_fd(slot);
    } else if (sys(__NR_dup3, fd, slot, 0) < 0) {  // without CLOEXEC: these cross the exec
      child::exit_now(126);
    }
  }
  // A literal array: execveat wants one name, and init looks at neither it nor the environment.
  const char* const argv[] = {"sbx-init", nullptr};
  const char* const envp[] = {nullptr};
  (void)sys(__NR_execveat, arguments.init, "", argv, envp, child::kAtEmptyPath);
  child::exit_now(127);
}

}  // namespace sbx::spawn
