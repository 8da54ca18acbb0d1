#include "bench/src/cgroup_view.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "runtime/base/sys.h"

namespace sbx::bench {
namespace {

constexpr const char* kUnified = "/sys/fs/cgroup/unified";  // where hybrid hosts have it

}  // namespace

Result<bool> hide_hybrid_cgroup2() {
  if (::geteuid() != 0) return false;
  const auto controllers = sys::read_file(std::string(kUnified) + "/cgroup.controllers", 4096);
  if (!controllers || controllers->find_first_not_of(" \n") == std::string::npos) return false;
  if (::unshare(CLONE_NEWNS) != 0) return sys_error("unshare(CLONE_NEWNS)");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return sys_error("mount");
  if (::umount2(kUnified, MNT_DETACH) != 0) return sys_error("umount2", kUnified);
  return true;
}

}  // namespace sbx::bench
