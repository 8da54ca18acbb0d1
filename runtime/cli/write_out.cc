#include "runtime/cli/write_out.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/cli/report.h"

namespace sbx::cli {

Result<void> write_out(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return sys_error("poll");
    } else if (errno != EINTR) {
      return sys_error("write");
    }
  }
  return {};
}

bool deliver(std::string_view text) {
  Result<void> written = write_out(STDOUT_FILENO, text);
  if (written) return true;
  print_lines(
      error_lines(std::move(written).error().with_context("the output could not be written")));
  return false;
}

}  // namespace sbx::cli
