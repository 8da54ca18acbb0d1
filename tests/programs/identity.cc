// Who a program is and what it may become: prints ids, groups and capabilities, then a line for
// each power that it got.
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

void print_ids() {
  uid_t u[3] = {};
  gid_t g[3] = {};
  gid_t groups[64] = {};
  (void)::getresuid(&u[0], &u[1], &u[2]);
  (void)::getresgid(&g[0], &g[1], &g[2]);
  const int count = ::getgroups(64, groups);
  int others = 0;
  for (int i = 0; i < count; ++i) others += groups[i] != g[0] ? 1 : 0;
  (void)std::printf("uid %u %u %u gid %u %u %u other groups %d\n", u[0], u[1], u[2], g[0], g[1],
                    g[2], others);
}

void print_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  (void)::syscall(SYS_capget, &header, data);
  int bounding = 0;
  int ambient = 0;
  for (int capability = 0; capability < 64; ++capability) {
    bounding += ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 ? 1 : 0;
    ambient += ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1 ? 1 : 0;
  }
  (void)std::printf("capabilities %x %x %x bounding %d ambient %d no_new_privs %d\n",
                    data[0].permitted | data[1].permitted, data[0].effective | data[1].effective,
                    data[0].inheritable | data[1].inheritable, bounding, ambient,
                    ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

void report(const char* what, long result) {
  if (result >= 0)
    (void)std::printf("got %s\n", what);
  else
    (void)std::printf("no %s: %s\n", what, std::strerror(errno));
  (void)std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  print_ids();
  print_capabilities();
  report("root", ::setresuid(0, 0, 0));
  report("root's group", ::setresgid(0, 0, 0));
  const gid_t wanted = 0;
  report("root's groups", ::setgroups(1, &wanted));
  // Ends the run where the filter is the default one.
  const bool unshares = argc > 1 && std::strcmp(argv[1], "unshare") == 0;
  if (!unshares) return 0;
  report("mount namespace", ::unshare(CLONE_NEWNS));
  report("mount", ::mount("x", "/tmp", "tmpfs", 0, nullptr));
  report("user namespace", ::unshare(CLONE_NEWUSER));
  return 0;
}
