#include "http/connection/input.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace sbx::http {
namespace {

constexpr int kReadsInARow = 16;
constexpr std::size_t kKeptCapacity = 1024;

}  // namespace

Input::Fill Input::receive(bool& would_block) {
  std::array<char, kReadBytes> buffer;
  ssize_t got = 0;
  do {
    got = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  would_block = got < 0 && errno == EAGAIN;
  if (got < 0) return Fill::kBroken;
  if (got == 0) return Fill::kEnd;
  pending_.append(buffer.data(), static_cast<std::size_t>(got));
  return Fill::kData;
}

async::Task<Input::Fill> Input::fill(async::Deadline deadline,
                                     const async::Cancellation* cancellation) {
  if (++reads_in_a_row_ >= kReadsInARow) {
    reads_in_a_row_ = 0;
    (void)co_await loop_.next_turn();
  }
  for (;;) {
    bool would_block = false;
    const Fill fill = receive(would_block);
    if (!would_block) co_return fill;
    reads_in_a_row_ = 0;
    const async::Wake wake = co_await watch_.readable(deadline, cancellation);
    if (wake == async::Wake::kDeadline) co_return Fill::kLate;
    if (wake == async::Wake::kCancelled) co_return Fill::kCancelled;
  }
}

void Input::shrink() {
  if (pending_.empty() && pending_.capacity() > kKeptCapacity) std::string().swap(pending_);
}

}  // namespace sbx::http
