#include "runtime/spawn/launch.h"

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/child/kernel.h"
#include "runtime/spawn/stub.h"

namespace sbx::spawn {
namespace {

constexpr std::uint64_t kNamespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

int enter_stub(void* arguments) {
  run_stub(*static_cast<const StubArguments*>(arguments));
}

}  // namespace

Result<Cloned> clone_init(int init, const InitDescriptors& descriptors, int init_leaf,
                          std::uint64_t without) {
  StubArguments arguments{init, &descriptors};
  int pidfd = -1;
  child::CloneArgs args;
  args.flags =
      CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | (kNamespaces & ~without);
  args.pidfd = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&pidfd));
  args.exit_signal = child::kSigchld;
  if (init_leaf >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(init_leaf);
  }
  const long pid = child::clone_on_stack(args, enter_stub, &arguments);
  if (pid < 0) {
    errno = static_cast<int>(-pid);
    return sys_error("clone3");
  }
  return Cloned{static_cast<pid_t>(pid), UniqueFd(pidfd)};
}

}  // namespace sbx::spawn
