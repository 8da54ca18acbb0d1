#include "http/connection/output.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sbx::http {

void Output::queue(std::string bytes) {
  if (broken_ || bytes.empty()) return;
  queued_ += bytes.size();
  account_.ledger.queue(account_.peer, bytes.size());
  queue_.push_back(std::move(bytes));
}

void Output::flush() {
  if (broken_ || flusher_.size() > 0) return;
  switch (send()) {
    case Progress::kAllSent:
      return;
    case Progress::kFailed:
      break_off();
      return;
    case Progress::kWouldBlock:
      flusher_.spawn(keep_sending());
  }
}

Output::Progress Output::send() {
  while (!queue_.empty()) {
    std::array<iovec, 16> parts;
    const std::size_t count = std::min(parts.size(), queue_.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t skip = i == 0 ? offset_ : 0;
      parts[i] = {queue_[i].data() + skip, queue_[i].size() - skip};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t put = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN ? Progress::kWouldBlock : Progress::kFailed;
    consume(static_cast<std::size_t>(put));
  }
  return Progress::kAllSent;
}

void Output::consume(std::size_t bytes) {
  queued_ -= bytes;
  account_.ledger.sent(account_.peer, bytes);
  pace_.moved(bytes);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, queue_.front().size() - offset_);
    offset_ += part;
    bytes -= part;
    if (offset_ < queue_.front().size()) return;
    queue_.pop_front();
    offset_ = 0;
  }
}

async::Task<void> Output::keep_sending() {
  for (;;) {
    const auto began = std::chrono::steady_clock::now();
    waits_since_ = began;
    const async::Wake wake = co_await watch_.writable(pace_.deadline(began), &gone_);
    waits_since_.reset();
    if (wake != async::Wake::kReady) break;
    pace_.waited(std::chrono::steady_clock::now() - began);
    const Progress progress = send();
    if (progress == Progress::kFailed) break;
    sent_.notify_all();
    if (progress == Progress::kAllSent) co_return;
  }
  break_off();
}

Pace::Duration Output::behind() const {
  if (queued_ == 0) return Pace::Duration::zero();
  const auto now = std::chrono::steady_clock::now();
  return pace_.used() + (waits_since_ ? now - *waits_since_ : Pace::Duration::zero());
}

async::Task<bool> Output::drained(std::size_t mark) {
  while (queued_ > mark && !broken_) (void)co_await sent_.wait();
  co_return !broken_;
}

void Output::drop() {
  queue_.clear();
  if (queued_ > 0) account_.ledger.sent(account_.peer, queued_);
  queued_ = 0;
}

void Output::break_off() {
  broken_ = true;
  drop();
  gone_.cancel();
  sent_.notify_all();
}

}  // namespace sbx::http
