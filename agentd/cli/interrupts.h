// Interrupts: Ctrl-C and SIGTERM as a descriptor, where they have more to do than to end agentctl.
#pragma once

#include <csignal>

#include "runtime/base/unique_fd.h"

namespace agentd::cli {

// From its making to its end, when they are the process's again: one that nobody has read by then
// ends it. One at a time, in a process of one thread.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // A signalfd, readable with each signal; not open when there could be none, and then signals end
  // the process as ever.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  sigset_t before_{};
  sbx::UniqueFd fd_;
};

}  // namespace agentd::cli
