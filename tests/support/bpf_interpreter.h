// A classic BPF interpreter with the kernel's rules for seccomp, to ask a compiled filter about
// calls that this host could not make (foreign ABIs, numbers of the future) or had better not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace sbx::test {

// struct seccomp_data
struct Call {
  std::uint32_t nr = 0;
  std::uint32_t arch = 0;
  std::uint64_t instruction_pointer = 0;
  std::array<std::uint64_t, 6> args{};
};

// The SECCOMP_RET_* value with its data, or nullopt for a program that the kernel would not load:
// an opcode that seccomp does not allow, a jump or read out of bounds, an end without return.
[[nodiscard]] std::optional<std::uint32_t> run_filter(std::span<const std::uint8_t> program,
                                                      const Call& call);

}  // namespace sbx::test
