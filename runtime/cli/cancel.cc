#include "runtime/cli/cancel.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace sbx::cli {
namespace {

bool ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<CancelSignals> CancelSignals::block() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    // A blocked signal is queued even if it is ignored: blocking would undo nohup.
    if (!ignored(signal)) sigaddset(&taken, signal);
  }
  sigset_t blocked = taken;
  sigaddset(&blocked, SIGPIPE);
  sigset_t previous;
  if (const int failed = ::pthread_sigmask(SIG_BLOCK, &blocked, &previous); failed != 0) {
    errno = failed;
    return sys_error("sigmask");
  }
  UniqueFd fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return sys_error("signalfd");
  return CancelSignals(std::move(fd), previous);
}

CancelSignals::~CancelSignals() {
  if (!fd_) return;  // moved from
  sigaddset(&previous_, SIGPIPE);
  (void)::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);  // cannot fail with a valid set
}

bool CancelSignals::take() {
  signalfd_siginfo info;
  return ::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

}  // namespace sbx::cli
