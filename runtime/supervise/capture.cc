#include "runtime/supervise/capture.h"

#include <algorithm>

namespace sbx::supervise {

Capture::Capture(std::uint64_t limit, Live live)
    : limit_(limit),
      head_limit_(static_cast<std::size_t>(limit - limit / 2)),
      tail_limit_(static_cast<std::size_t>(limit / 2)),
      live_(std::move(live)) {}

void Capture::add(std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t room = head_limit_ - head_.size();
  const std::string_view first = bytes.substr(0, std::min(room, bytes.size()));
  if (!first.empty()) {
    head_ += first;
    if (live_) live_(first);
    bytes.remove_prefix(first.size());
  }
  add_to_tail(bytes);
}

void Capture::add_to_tail(std::string_view bytes) {
  if (bytes.size() >= tail_limit_) {
    ring_.assign(bytes.substr(bytes.size() - tail_limit_));
    ring_at_ = 0;
    return;
  }
  const std::size_t growing = std::min(bytes.size(), tail_limit_ - ring_.size());
  ring_ += bytes.substr(0, growing);
  bytes.remove_prefix(growing);
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), tail_limit_ - ring_at_);
    ring_.replace(ring_at_, part, bytes.substr(0, part));
    ring_at_ = (ring_at_ + part) % tail_limit_;
    bytes.remove_prefix(part);
  }
}

Captured Capture::take() {
  Captured captured;
  captured.total = total_;
  captured.dropped = total_ - head_.size() - ring_.size();
  captured.head = std::move(head_);
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(ring_at_), ring_.end());
  captured.tail = std::move(ring_);
  return captured;
}

}  // namespace sbx::supervise
