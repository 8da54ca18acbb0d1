#include "agentd/cli/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace agentd::cli {

Interrupts::Interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  fd_ = sbx::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd_) (void)::sigprocmask(SIG_BLOCK, &set, &before_);  // fails for wrong arguments alone
}

Interrupts::~Interrupts() {
  if (fd_) (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace agentd::cli
