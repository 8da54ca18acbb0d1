// The fuzz entry over all pairs of bytes; tests/fuzz replays its corpus.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/entry.h"

namespace sbx::collect {
namespace {

void run(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  EXPECT_EQ(LLVMFuzzerTestOneInput(data, bytes.size()), 0);
}

TEST(CollectorNamesFuzz, HoldsOnAllPairsOfBytesAfterALeadByte) {
  for (const char lead : {'\\', '\xE2', '\xF0', '\xED'}) {
    for (int pair = 0; pair < 65536; ++pair) {
      const std::array<char, 3> bytes{lead, static_cast<char>(pair >> 8), static_cast<char>(pair)};
      run({bytes.data(), bytes.size()});
    }
  }
}

}  // namespace
}  // namespace sbx::collect
