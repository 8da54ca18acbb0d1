#include "runtime/cli/live_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/escape.h"

namespace sbx::cli {
namespace {

// A pipe that is ready for writing takes this much at once without blocking (PIPE_BUF).
constexpr std::size_t kPiece = 4096;

std::size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  return lead >= 0xC0 ? 2 : 1;
}

}  // namespace

std::size_t unfinished_tail(std::string_view bytes) {
  const std::size_t look = std::min<std::size_t>(bytes.size(), 3);
  for (std::size_t back = 1; back <= look; ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte < 0x80) return 0;
    if (byte >= 0xC0) return sequence_length(byte) > back ? back : 0;
  }
  return 0;
}

LiveOutput::LiveOutput(int fd) : LiveOutput(fd, ::isatty(fd) == 1) {}

void LiveOutput::append(std::string_view bytes) {
  if (bytes.empty()) return;
  appended_ += bytes.size();
  last_ = bytes.back();
  if (failed_) return;
  if (!escape_) {
    waiting_ += bytes;
    return;
  }
  incomplete_ += bytes;
  const std::size_t whole = incomplete_.size() - unfinished_tail(incomplete_);
  waiting_ +=
      escape_for_terminal(std::string_view(incomplete_).substr(0, whole), Keep::kNewlinesAndTabs);
  incomplete_.erase(0, whole);
}

void LiveOutput::serve(short revents) {
  if (revents == 0) return;
  if (pending()) {
    write_some();
  } else if ((revents & POLLNVAL) != 0) {
    fd_ = -1;  // closed by whoever started us: matters only once there is something to write
  } else if ((revents & POLLERR) != 0) {
    failed_ = true;
    errno_ = EPIPE;
  }
}

void LiveOutput::write_some() {
  if (!pending()) return;
  const ssize_t written = ::write(fd_, waiting_.data(), std::min(waiting_.size(), kPiece));
  if (written >= 0) {
    waiting_.erase(0, static_cast<std::size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    failed_ = true;
    errno_ = errno;
    waiting_.clear();
  }
}

bool LiveOutput::flush() {
  waiting_ += escape_for_terminal(incomplete_, Keep::kNewlinesAndTabs);
  incomplete_.clear();
  while (pending()) {
    // The caller may have made the descriptor non-blocking: wait, then write.
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) break;
    write_some();
  }
  return !failed_;
}

}  // namespace sbx::cli
