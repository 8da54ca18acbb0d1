// The fuzz entry over its corpus, over each prefix of each input, and over all pairs of bytes.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>

#include "runtime/base/sys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sbx::collect {
namespace {

void run(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  EXPECT_EQ(LLVMFuzzerTestOneInput(data, bytes.size()), 0);
}

TEST(CollectorNamesFuzz, HoldsOnTheCorpusAndItsPrefixes) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SBX_CORPUS)) {
    auto bytes = sys::read_file(entry.path(), 1U << 16);
    ASSERT_TRUE(bytes);
    for (std::size_t i = 0; i <= bytes->size(); ++i) run(std::string_view(*bytes).substr(0, i));
    ++inputs;
  }
  EXPECT_GE(inputs, 8);
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
