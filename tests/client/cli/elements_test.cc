#include "client/cli/elements.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

using client::DType;
using ::testing::ElementsAre;

TEST(ElementsTest, Bf16IsTheUpperHalf) {
  const std::vector<std::byte> bytes = {std::byte{0x80}, std::byte{0x3f},
                                        std::byte{0x00}, std::byte{0xc0}};
  EXPECT_THAT(Elements(DType::kBf16, bytes), ElementsAre(1.0F, -2.0F));
  EXPECT_EQ(BytesOf(DType::kBf16, std::vector<float>{1.0F, -2.0F}), bytes);
}

TEST(ElementsTest, EveryTypeGoesThereAndBack) {
  const std::vector<float> values = {0.0F, 1.5F, -0.25F};
  for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    EXPECT_EQ(Elements(dtype, BytesOf(dtype, values)), values) << NameOf(dtype);
  }
}

TEST(ElementsTest, NumbersHaveSixDigits) {
  EXPECT_EQ(Number(0.02039337F), "0.0203934");
  EXPECT_EQ(Number(-1), "-1");
}

}  // namespace
}  // namespace rowhouse::cli
