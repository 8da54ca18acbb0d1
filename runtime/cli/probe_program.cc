#include "runtime/cli/probe_program.h"

// Made by CMakeLists.txt with .incbin.
extern "C" const std::uint8_t sbx_probe_begin[];
extern "C" const std::uint8_t sbx_probe_end[];

namespace sbx::cli {

std::span<const std::uint8_t> probe_program() {
  return {sbx_probe_begin, sbx_probe_end};
}

}  // namespace sbx::cli
