#include "runtime/spawn/net_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>

namespace sbx::spawn {
namespace {

constexpr std::size_t kStack = 64 * 1024;

UniqueFd own_namespace() {
  return UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

// In a child that shares memory and descriptors, is in a new net namespace, and stops the spawner
// until it ends: what it opens stays open. (A user cannot unshare and go back: the first net
// namespace is not his.)
int open_own_namespace(void* result) {
  *static_cast<int*>(result) = own_namespace().release();
  return 0;
}

Result<UniqueFd> make() {
  alignas(64) static char stack[kStack];
  int fd = -1;
  const pid_t pid = ::clone(open_own_namespace, stack + kStack,
                            CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_NEWNET, &fd);
  if (pid < 0) return sys_error("clone(CLONE_NEWNET)");
  int status = 0;
  while (::waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {
  }
  if (fd < 0 && WIFSIGNALED(status)) {
    errno = EINTR;  // somebody killed it, so it has left no errno
    return sys_error("clone(CLONE_NEWNET)");
  }
  if (fd < 0) return sys_error("open(/proc/self/ns/net)");
  return UniqueFd(fd);
}

}  // namespace

void NetNamespaces::enter() {
  if (target_ == 0 || ::unshare(CLONE_NEWNET) != 0) return;  // take() will say why
  if (UniqueFd own = own_namespace()) ready_.push_back(std::move(own));
}

Result<UniqueFd> NetNamespaces::take() {
  if (!refilled_ && target_ > 0) --target_;
  if (ready_.empty()) return make();
  UniqueFd taken = std::move(ready_.back());
  ready_.pop_back();
  return taken;
}

bool NetNamespaces::refill() {
  if (ready_.size() >= target_) return false;
  auto made = make();
  if (!made) return false;  // a run that needs one will say why
  ready_.push_back(*std::move(made));
  return ready_.size() < target_;
}

}  // namespace sbx::spawn
