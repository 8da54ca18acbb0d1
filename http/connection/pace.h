// Pace: how long a client may keep us waiting, in relation to the bytes he moves. No clock of its
// own.
//
// An allowance of waiting time that starts at `grace`. Waiting uses it up; each `bytes_per_second`
// moved give a second back, up to `grace`. So a client that stalls is cut off after `grace`, one
// that trickles below the rate a little later, and one that was fast has earned no longer stall.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sbx::http {

class Pace {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;

  Pace(Duration grace, std::uint64_t bytes_per_second)
      : grace_(grace), left_(grace), bytes_per_second_(bytes_per_second) {}

  // Until when a wait that begins now may last.
  [[nodiscard]] TimePoint deadline(TimePoint now) const { return now + left_; }
  // Of the grace.
  [[nodiscard]] Duration used() const { return grace_ - left_; }
  void waited(Duration time) { left_ -= time; }
  void moved(std::uint64_t bytes) {
    const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_);
    const double most = std::chrono::duration<double>(grace_).count();
    const std::chrono::duration<double> earned(std::min(seconds, most));
    left_ = std::min(grace_, left_ + std::chrono::duration_cast<Duration>(earned));
  }

 private:
  Duration grace_;
  Duration left_;
  std::uint64_t bytes_per_second_;
};

}  // namespace sbx::http
