// Net namespaces on this host, each test in a process and a user namespace of its own.
#include "runtime/spawn/net_namespace.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <functional>

namespace sbx::spawn {
namespace {

constexpr int kHolds = 0, kDoesNot = 1, kNoUserNamespace = 2;

ino_t own_namespace() {
  struct stat status{};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

ino_t inode(const UniqueFd& fd) {
  struct stat status{};
  return ::fstat(fd.get(), &status) == 0 ? status.st_ino : 0;
}

// What `holds` says in a new process, which may make net namespaces whoever runs the tests.
int in_child(const std::function<bool()>& holds) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(kNoUserNamespace);
    ::_exit(holds() ? kHolds : kDoesNot);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kDoesNot;
}

void expect_in_child(const std::function<bool()>& holds) {
  const int result = in_child(holds);
  if (result == kNoUserNamespace) GTEST_SKIP() << "this host gives no user namespace";
  EXPECT_EQ(result, kHolds);
}

TEST(NetNamespaces, MadeAheadAreNotTheMakersOwn) {
  expect_in_child([] {
    const ino_t before = own_namespace();
    NetNamespaces namespaces(1, false);
    (void)namespaces.refill();
    const auto taken = namespaces.take();
    return taken && before != 0 && own_namespace() == before && inode(*taken) != before;
  });
}

TEST(NetNamespaces, EnteredOneIsTheOneToTakeAndNobodyElsesLater) {
  expect_in_child([] {
    const ino_t before = own_namespace();
    NetNamespaces namespaces(1, false);
    namespaces.enter();
    const ino_t entered = own_namespace();
    const auto first = namespaces.take();
    const auto second = namespaces.take();
    return first && second && entered != before && inode(*first) == entered &&
           inode(*second) != entered && inode(*second) != before;
  });
}

TEST(NetNamespaces, NoneIsEnteredWhereNoneIsWantedReady) {
  expect_in_child([] {
    const ino_t before = own_namespace();
    NetNamespaces(0, false).enter();
    return before != 0 && own_namespace() == before;
  });
}

}  // namespace
}  // namespace sbx::spawn
