#include "tests/support/bpf_interpreter.h"

#include <linux/filter.h>

#include <cstring>
#include <vector>

namespace sbx::test {
namespace {

static_assert(sizeof(Call) == 64, "the layout of struct seccomp_data");

class Machine {
 public:
  Machine(std::vector<sock_filter> program, const Call& call) : program_(std::move(program)) {
    std::memcpy(data_.data(), &call, sizeof call);
  }

  std::optional<std::uint32_t> run() {
    while (pc_ < program_.size() && !failed_) {
      const sock_filter& instruction = program_[pc_++];
      if (BPF_CLASS(instruction.code) == BPF_RET) return returned(instruction);
      step(instruction);
    }
    return std::nullopt;
  }

 private:
  std::optional<std::uint32_t> returned(const sock_filter& instruction) const {
    if (BPF_RVAL(instruction.code) == BPF_K) return instruction.k;
    if (BPF_RVAL(instruction.code) == BPF_A) return a_;
    return std::nullopt;
  }

  void step(const sock_filter& i) {
    switch (BPF_CLASS(i.code)) {
      case BPF_LD:
        return load(i, a_);
      case BPF_LDX:
        return load(i, x_);
      case BPF_ST:
        return store(i.k, a_);
      case BPF_STX:
        return store(i.k, x_);
      case BPF_ALU:
        return compute(BPF_OP(i.code), operand(i));
      case BPF_JMP:
        return jump(i);
      case BPF_MISC:
        if (BPF_MISCOP(i.code) == BPF_TAX) {
          x_ = a_;
        } else {
          a_ = x_;
        }
        return;
      default:
        failed_ = true;
    }
  }

  [[nodiscard]] std::uint32_t operand(const sock_filter& i) const {
    return BPF_SRC(i.code) == BPF_X ? x_ : i.k;
  }

  void load(const sock_filter& i, std::uint32_t& target) {
    if (BPF_MODE(i.code) == BPF_IMM) {
      target = i.k;
    } else if (BPF_MODE(i.code) == BPF_MEM && i.k < memory_.size()) {
      target = memory_[i.k];
    } else if (BPF_MODE(i.code) == BPF_ABS && BPF_SIZE(i.code) == BPF_W && i.k % 4 == 0 &&
               i.k < sizeof(Call)) {
      target = data_[i.k / 4];
    } else {
      failed_ = true;
    }
  }

  void store(std::uint32_t slot, std::uint32_t value) {
    if (slot < memory_.size()) {
      memory_[slot] = value;
    } else {
      failed_ = true;
    }
  }

  void compute(std::uint32_t operation, std::uint32_t value) {
    switch (operation) {
      case BPF_ADD:
        a_ += value;
        return;
      case BPF_SUB:
        a_ -= value;
        return;
      case BPF_MUL:
        a_ *= value;
        return;
      case BPF_AND:
        a_ &= value;
        return;
      case BPF_OR:
        a_ |= value;
        return;
      case BPF_XOR:
        a_ ^= value;
        return;
      case BPF_LSH:
        a_ = value < 32 ? a_ << value : 0;
        return;
      case BPF_RSH:
        a_ = value < 32 ? a_ >> value : 0;
        return;
      case BPF_NEG:
        a_ = 0 - a_;
        return;
      default:
        failed_ = true;  // division and the rest: no filter of ours has a use for them
    }
  }

  void jump(const sock_filter& i) {
    if (BPF_OP(i.code) == BPF_JA) {
      pc_ += i.k;
      return;
    }
    const std::uint32_t value = operand(i);
    bool taken = false;
    switch (BPF_OP(i.code)) {
      case BPF_JEQ:
        taken = a_ == value;
        break;
      case BPF_JGT:
        taken = a_ > value;
        break;
      case BPF_JGE:
        taken = a_ >= value;
        break;
      case BPF_JSET:
        taken = (a_ & value) != 0;
        break;
      default:
        failed_ = true;
    }
    pc_ += taken ? i.jt : i.jf;
  }

  std::vector<sock_filter> program_;
  std::array<std::uint32_t, sizeof(Call) / 4> data_{};
  std::array<std::uint32_t, BPF_MEMWORDS> memory_{};
  std::size_t pc_ = 0;
  std::uint32_t a_ = 0;
  std::uint32_t x_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::uint32_t> run_filter(std::span<const std::uint8_t> program, const Call& call) {
  if (program.empty() || program.size() % sizeof(sock_filter) != 0) return std::nullopt;
  std::vector<sock_filter> instructions(program.size() / sizeof(sock_filter));
  std::memcpy(instructions.data(), program.data(), program.size());
  return Machine(std::move(instructions), call).run();
}

}  // namespace sbx::test
