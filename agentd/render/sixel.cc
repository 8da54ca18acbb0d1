#include "agentd/render/sixel.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace agentd::render {
namespace {

constexpr int kLevels = 6;
constexpr int kColours = kLevels * kLevels * kLevels;
constexpr int kBand = 6;  // rows of one line of sixels

std::uint8_t level(std::uint32_t value) {
  return static_cast<std::uint8_t>((value * (kLevels - 1) + 127) / 255);
}

// Each pixel's colour, after averaging squares of `factor` pixels.
std::vector<std::uint8_t> colours_of(const Pixels& pixels, int factor, int width, int height) {
  std::vector<std::uint8_t> colours;
  colours.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::array<std::uint32_t, 3> sum{};
      for (int dy = 0; dy < factor; ++dy) {
        for (int dx = 0; dx < factor; ++dx) {
          const auto at = 3 * (static_cast<std::size_t>(y * factor + dy) *
                                   static_cast<std::size_t>(pixels.width) +
                               static_cast<std::size_t>(x * factor + dx));
          for (std::size_t c = 0; c < 3; ++c) sum[c] += pixels.rgb[at + c];
        }
      }
      const auto count = static_cast<std::uint32_t>(factor * factor);
      colours.push_back(static_cast<std::uint8_t>(
          (level(sum[0] / count) * kLevels + level(sum[1] / count)) * kLevels +
          level(sum[2] / count)));
    }
  }
  return colours;
}

// "!<count><sixel>" for runs that are worth it.
void add_run(std::string& out, char sixel, int count) {
  if (count > 3) {
    out += fmt::format("!{}{}", count, sixel);
  } else {
    out.append(static_cast<std::size_t>(count), sixel);
  }
}

void add_colour(std::string& out, const std::vector<std::uint8_t>& colours, int width, int top,
                int rows, int colour) {
  out += fmt::format("#{}", colour);
  char last = 0;
  int count = 0;
  for (int x = 0; x < width; ++x) {
    unsigned bits = 0;
    for (int row = 0; row < rows; ++row) {
      const auto at = static_cast<std::size_t>(top + row) * static_cast<std::size_t>(width) +
                      static_cast<std::size_t>(x);
      if (colours[at] == colour) bits |= 1U << static_cast<unsigned>(row);
    }
    const char sixel = static_cast<char>('?' + bits);
    if (sixel != last && count > 0) {
      add_run(out, last, count);
      count = 0;
    }
    last = sixel;
    ++count;
  }
  add_run(out, last, count);
}

std::string palette() {
  std::string out;
  for (int i = 0; i < kColours; ++i) {
    const auto percent = [](int value) { return value * 100 / (kLevels - 1); };
    out += fmt::format("#{};2;{};{};{}", i, percent(i / (kLevels * kLevels)),
                       percent(i / kLevels % kLevels), percent(i % kLevels));
  }
  return out;
}

}  // namespace

std::string sixel_image(const Pixels& pixels, int max_width) {
  const int factor = std::max(1, (pixels.width + max_width - 1) / max_width);
  const int width = pixels.width / factor;
  const int height = pixels.height / factor;
  if (width <= 0 || height <= 0) return {};
  const std::vector<std::uint8_t> colours = colours_of(pixels, factor, width, height);
  std::string out = fmt::format("\x1bPq\"1;1;{};{}", width, height) + palette();
  for (int top = 0; top < height; top += kBand) {
    const int rows = std::min(kBand, height - top);
    std::array<bool, kColours> used{};
    const auto begin = colours.begin() + static_cast<std::ptrdiff_t>(top) * width;
    std::for_each(begin, begin + static_cast<std::ptrdiff_t>(rows) * width,
                  [&used](std::uint8_t colour) { used[colour] = true; });
    for (int colour = 0; colour < kColours; ++colour) {
      if (!used[static_cast<std::size_t>(colour)]) continue;
      add_colour(out, colours, width, top, rows, colour);
      out += '$';  // back to the start of the line
    }
    out += '-';  // the next line
  }
  return out + "\x1b\\\n";
}

}  // namespace agentd::render
