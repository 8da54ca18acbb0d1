// sbx-init as bytes, linked into the program (runtime/child/CMakeLists.txt). Stage: spawn.
#pragma once

#include <cstdint>
#include <span>

extern "C" {
extern const std::uint8_t sbx_init_image_begin[];
extern const std::uint8_t sbx_init_image_end[];
}

namespace sbx::spawn {

[[nodiscard]] inline std::span<const std::uint8_t> init_image() {
  return {sbx_init_image_begin, sbx_init_image_end};
}

}  // namespace sbx::spawn
