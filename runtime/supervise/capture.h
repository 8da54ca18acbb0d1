// One captured stream: keeps head and tail, counts the middle. Stage: supervise.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/supervise/ending.h"

namespace sbx::supervise {

class Capture {
 public:
  using Live = std::function<void(std::string_view)>;
  // Keeps `limit` bytes: half head, half tail. `live` gets the head as it comes.
  Capture(std::uint64_t limit, Live live);

  void add(std::string_view bytes);
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] bool over_limit() const { return total_ > limit_; }
  [[nodiscard]] Captured take();

 private:
  void add_to_tail(std::string_view bytes);

  std::uint64_t limit_;
  std::size_t head_limit_;
  std::size_t tail_limit_;
  Live live_;
  std::string head_;
  std::string ring_;         // the last tail_limit_ bytes behind the head
  std::size_t ring_at_ = 0;  // where the next byte goes once the ring is full
  std::uint64_t total_ = 0;
};

}  // namespace sbx::supervise
