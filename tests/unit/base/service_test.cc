#include "runtime/base/service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "tests/support/process.h"

namespace sbx {
namespace {

TEST(Service, ClosedStandardDescriptorsAreOpenedSoThatNothingElseGetsTheirNumbers) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {0, 1, 2}) ::close(fd);
    if (!prepare_process()) ::_exit(1);
    char byte = 0;
    if (::read(0, &byte, 1) != 0 || ::write(2, &byte, 1) != 1) ::_exit(2);
    if (::write(1, &byte, 1) != -1 || errno != EBADF) ::_exit(4);
    const bool inherited = (::fcntl(0, F_GETFD) & FD_CLOEXEC) == 0;
    ::_exit(inherited && ::open("/dev/null", O_RDONLY | O_CLOEXEC) > 2 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Service, AFileThatMayNotGrowIsAnErrorAndNoSignal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (!prepare_process() || ::setrlimit(RLIMIT_FSIZE, &none) != 0) ::_exit(1);
    const int file = ::open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    ::_exit(file >= 0 && ::write(file, "x", 1) == -1 && errno == EFBIG ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Service, ChildrenCanBeWaitedForWhateverTheCallerIgnores) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::signal(SIGCHLD, SIG_IGN);
    if (!prepare_process()) ::_exit(1);
    const pid_t own = ::fork();
    if (own == 0) ::_exit(7);
    int status = 0;
    ::_exit(::waitpid(own, &status, 0) == own && WEXITSTATUS(status) == 7 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Service, EndingSignalsComeByADescriptor) {
  // In a child, whose signals nobody else needs.
  const pid_t child = ::fork();
  if (child == 0) {
    auto signals = block_ending_signals();
    if (!signals) ::_exit(1);
    (void)::raise(SIGTERM);
    signalfd_siginfo information{};
    const ssize_t size = ::read(signals->get(), &information, sizeof information);
    ::_exit(size == sizeof information && information.ssi_signo == SIGTERM ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Service, SystemdIsToldOnTheSocketThatItNames) {
  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/notify";
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::setenv("NOTIFY_SOCKET", path.c_str(), 1), 0);
  notify_systemd("READY=1");
  ASSERT_EQ(::unsetenv("NOTIFY_SOCKET"), 0);
  notify_systemd("READY=1");  // nobody to tell
  char buffer[64];
  EXPECT_EQ(::recv(socket.get(), buffer, sizeof buffer, 0), 7);
  EXPECT_EQ(::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT), -1);
}

TEST(Service, FiguresOfThisProcessArePlausible) {
  EXPECT_GT(resident_bytes(), 100'000U);
  const std::uint64_t before = open_descriptors();
  const UniqueFd more(::dup(0));
  EXPECT_EQ(open_descriptors(), before + 1);
  EXPECT_GE(cpu_seconds(), 0);
}

}  // namespace
}  // namespace sbx
