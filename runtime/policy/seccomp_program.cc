#include "runtime/policy/seccomp_program.h"

namespace sbx::policy {
namespace {

// A conditional jump says in 8 bits how far. What the other target of the same jump may need is
// written in between: one instruction.
constexpr std::size_t kReach = 255 - 1;

}  // namespace

BpfProgram::Place BpfProgram::write(std::uint16_t code, std::uint8_t yes, std::uint8_t no,
                                    std::uint32_t k) {
  backwards_.push_back({code, yes, no, k});
  return backwards_.size() - 1;
}

BpfProgram::Place BpfProgram::near(const Target& target) {
  if (target.returns) {
    const auto known = returns_.find(target.value);
    if (known != returns_.end() && distance(known->second) <= kReach) return known->second;
    return returns_[target.value] = write(BPF_RET | BPF_K, 0, 0, target.value);
  }
  if (distance(target.place) <= kReach) return target.place;
  return write(BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(distance(target.place)));
}

BpfProgram::Target BpfProgram::jump(std::uint16_t operation, std::uint32_t k, const Target& yes,
                                    const Target& no) {
  const Place yes_place = near(yes);
  const Place no_place = near(no);
  const auto to_yes = static_cast<std::uint8_t>(distance(yes_place));
  const auto to_no = static_cast<std::uint8_t>(distance(no_place));
  return {.place =
              write(static_cast<std::uint16_t>(BPF_JMP | operation | BPF_K), to_yes, to_no, k)};
}

BpfProgram::Target BpfProgram::choose_between(const Range* first, const Range* end) {
  const auto count = end - first;
  if (count == 1) return first->second;
  // A single value in a range of another target takes one comparison.
  if (count == 3 && first[0].second == first[2].second && first[2].first - first[1].first == 1) {
    return jump(BPF_JEQ, first[1].first, first[1].second, first[0].second);
  }
  const Range* const middle = first + count / 2;
  const Target above = choose_between(middle, end);
  const Target below = choose_between(first, middle);
  return jump(BPF_JGE, middle->first, above, below);
}

BpfProgram::Target BpfProgram::choose(const Ranges& ranges) {
  std::vector<Range> merged;
  for (const auto& range : ranges) {
    if (merged.empty() || merged.back().second != range.second) merged.emplace_back(range);
  }
  return choose_between(merged.data(), merged.data() + merged.size());
}

BpfProgram::Target BpfProgram::choose_value(const std::map<std::uint32_t, Target>& values,
                                            const Target& other) {
  Ranges ranges{{0, other}};
  for (const auto& [value, target] : values) {  // in their order, so a neighbour overwrites
    ranges[value] = target;
    if (value != ~std::uint32_t{0}) ranges[value + 1] = other;
  }
  return choose(ranges);
}

void BpfProgram::follow_with(const Target& next) {
  if (next.returns) {
    returns_[next.value] = write(BPF_RET | BPF_K, 0, 0, next.value);
  } else if (distance(next.place) != 0) {
    write(BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(distance(next.place)));
  }
}

BpfProgram::Target BpfProgram::load(std::uint32_t offset, const Target& next) {
  follow_with(next);
  return {.place = write(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)};
}

BpfProgram::Target BpfProgram::mask(std::uint32_t bits, const Target& next) {
  if (bits == ~std::uint32_t{0}) return next;
  follow_with(next);
  return {.place = write(BPF_ALU | BPF_AND | BPF_K, 0, 0, bits)};
}

std::vector<std::uint8_t> BpfProgram::bytes() const {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(backwards_.size() * sizeof(sock_filter));
  for (auto at = backwards_.rbegin(); at != backwards_.rend(); ++at) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(&*at);
    bytes.insert(bytes.end(), from, from + sizeof *at);
  }
  return bytes;
}

}  // namespace sbx::policy
