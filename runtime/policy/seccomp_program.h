// A BPF program for seccomp(2), written from its end to its beginning. Stage: policy.
//
// Every jump of classic BPF goes forward, and a conditional one names both of its targets: so who
// writes a program backwards knows each target when he writes the jump to it.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <map>
#include <vector>

namespace sbx::policy {

class BpfProgram {
 public:
  // An instruction that was written, counted from the end.
  using Place = std::size_t;

  // Where to go on: at an instruction, or at the end with a SECCOMP_RET_* value.
  struct Target {
    bool returns = false;
    std::uint32_t value = 0;  // `returns`
    Place place = 0;          // else
    bool operator==(const Target&) const = default;
  };
  [[nodiscard]] static constexpr Target ret(std::uint32_t value) {
    return {.returns = true, .value = value};
  }

  // From each key up to the next one: on to its target. Without signs, in 32 bits; has the key 0.
  using Ranges = std::map<std::uint32_t, Target>;
  // By the accumulator: a binary tree, in which neighbours of one target are one range.
  Target choose(const Ranges& ranges);
  // On to the target of the accumulator's value, or to `other` when it has none.
  Target choose_value(const std::map<std::uint32_t, Target>& values, const Target& other);
  // Into the accumulator: a word of struct seccomp_data; then on to `next`.
  Target load(std::uint32_t offset, const Target& next);
  // Of the accumulator, these bits; then on to `next`.
  Target mask(std::uint32_t bits, const Target& next);

  // Begins with what was written last.
  [[nodiscard]] std::vector<std::uint8_t> bytes() const;

 private:
  using Range = std::pair<std::uint32_t, Target>;

  Place write(std::uint16_t code, std::uint8_t yes, std::uint8_t no, std::uint32_t k);
  // An instruction within a jump's reach that goes on there.
  Place near(const Target& target);
  // Before an instruction that is not a jump: makes the next one written last go on there.
  void follow_with(const Target& next);
  Target jump(std::uint16_t operation, std::uint32_t k, const Target& yes, const Target& no);
  Target choose_between(const Range* first, const Range* end);
  // How many instructions lie between a place and what is written next.
  [[nodiscard]] std::size_t distance(Place place) const { return backwards_.size() - 1 - place; }

  std::vector<sock_filter> backwards_;
  std::map<std::uint32_t, Place> returns_;  // the nearest of each value
};

}  // namespace sbx::policy
