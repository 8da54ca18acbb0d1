// CancelSignals: the caller's wish to stop, as a descriptor. Stage: edge (sbx-run), main thread.
//
// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT are blocked and come out of `fd()`, unless
// the caller had them ignored (nohup, a background job); SIGPIPE is blocked, so that writing to a
// reader that left is EPIPE. Make it before the sandbox is opened: from then on there is something
// of ours on the host that a sudden end would leave to a later start.
#pragma once

#include <csignal>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::cli {

class CancelSignals {
 public:
  [[nodiscard]] static Result<CancelSignals> block();
  CancelSignals(CancelSignals&&) noexcept = default;
  CancelSignals& operator=(CancelSignals&&) = delete;
  ~CancelSignals();  // the mask as it was, SIGPIPE still blocked; a signal that came later acts now

  [[nodiscard]] int fd() const { return fd_.get(); }  // readable: cancel
  // Takes a signal out, so that it does not end us after the run. False when there was none.
  bool take();

 private:
  CancelSignals(UniqueFd fd, const sigset_t& previous) : fd_(std::move(fd)), previous_(previous) {}
  UniqueFd fd_;
  sigset_t previous_;
};

}  // namespace sbx::cli
