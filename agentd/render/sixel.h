// Pixels as sixel graphics. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace agentd::render {

struct Pixels {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // width × height × 3, row by row
};

// In 6 × 6 × 6 colours. Larger pictures than `max_width` are made smaller, by a whole factor.
[[nodiscard]] std::string sixel_image(const Pixels& pixels, int max_width = 1000);

}  // namespace agentd::render
