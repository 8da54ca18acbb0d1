#include "tests/support/pty.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

// A session of its own, with the terminal as the controlling one.
[[noreturn]] void take_terminal_and_become(int terminal, const std::vector<std::string>& argv,
                                           const ProcessOptions& options) {
  const bool taken = ::setsid() > 0 && ::ioctl(terminal, TIOCSCTTY, 0) == 0;
  for (int fd = 0; fd <= 2; ++fd) (void)::dup2(terminal, fd);
  if (taken) become_program(argv, options);
  ::_exit(127);
}

}  // namespace

PtyProcess::PtyProcess(const std::vector<std::string>& argv, const ProcessOptions& options)
    : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) {
    throw std::runtime_error("a terminal of a test");
  }
  std::array<char, 64> name{};
  if (::ptsname_r(master_.get(), name.data(), name.size()) != 0) {
    throw std::runtime_error("the name of a terminal");
  }
  slave_ = UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (options.uid && ::fchown(slave_.get(), *options.uid, *options.uid) != 0) {
    throw std::runtime_error("the owner of a terminal");
  }
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork of a test");
  if (pid_ == 0) take_terminal_and_become(slave_.get(), argv, options);
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

PtyProcess::~PtyProcess() {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

Finished PtyProcess::finish(std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  Finished finished;
  std::array<pollfd, 2> fds = {pollfd{master_.get(), POLLIN, 0}, pollfd{pidfd_.get(), POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || ::poll(fds.data(), 2, static_cast<int>(left.count())) == 0) break;
    std::array<char, 4096> buffer;
    if ((fds[0].revents & POLLIN) != 0) {
      const ssize_t got = ::read(master_.get(), buffer.data(), buffer.size());
      if (got > 0) finished.out.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (fds[1].revents != 0) {
      break;  // what it had to show was read before
    }
  }
  int status = 0;
  if (::poll(&fds[1], 1, 0) != 1) (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  return finished;
}

int PtyProcess::typed() const {
  // In raw mode every byte counts, not only whole lines.
  termios settings{};
  (void)::tcgetattr(slave_.get(), &settings);
  ::cfmakeraw(&settings);
  (void)::tcsetattr(slave_.get(), TCSANOW, &settings);
  int bytes = -1;
  (void)::ioctl(slave_.get(), FIONREAD, &bytes);
  return bytes;
}

}  // namespace sbx::test
