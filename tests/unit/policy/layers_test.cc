#include "runtime/policy/layers.h"

#include <gtest/gtest.h>

namespace sbx::policy {
namespace {

TEST(Layers, NamesAreThoseOfTheContractAndFindTheirLayer) {
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Layer::kCount); ++i) {
    const Layer layer = static_cast<Layer>(i);
    EXPECT_EQ(layer_from_name(layer_name(layer)), layer) << layer_name(layer);
  }
  EXPECT_EQ(layer_from_name("no_such_layer"), std::nullopt);
  EXPECT_EQ(layer_from_name(""), std::nullopt);
}

TEST(Layers, FourAreOptional) {
  int optional = 0;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Layer::kCount); ++i) {
    if (!layer_required(static_cast<Layer>(i))) ++optional;
  }
  EXPECT_EQ(optional, 4);
  EXPECT_FALSE(layer_required(Layer::kUidSeparation));
  EXPECT_FALSE(layer_required(Layer::kLandlock));
  EXPECT_TRUE(layer_required(Layer::kSeccomp));
}

TEST(Layers, FitTheMask) {
  EXPECT_LE(static_cast<std::uint32_t>(Layer::kCount), 32U);
  EXPECT_NE(layer_bit(Layer::kCgroup), layer_bit(Layer::kSeccomp));
}

}  // namespace
}  // namespace sbx::policy
