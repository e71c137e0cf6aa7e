#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "kernels/arithmetic.h"
#include "kernels/dtype.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

static_assert(FloatToFp16(1.0F) == 0x3c00);
static_assert(Fp16ToFloat(0x3c00) == 1.0F);

TEST(Fp16Test, WidensEachKindOfNumberExactly) {
  EXPECT_EQ(Fp16ToFloat(0x0000), 0.0F);
  EXPECT_TRUE(std::signbit(Fp16ToFloat(0x8000)));
  EXPECT_EQ(Fp16ToFloat(0x0001), 0x1p-24F);
  EXPECT_EQ(Fp16ToFloat(0x03ff), 1023 * 0x1p-24F);
  EXPECT_EQ(Fp16ToFloat(0x0400), 0x1p-14F);
  EXPECT_EQ(Fp16ToFloat(0xc100), -2.5F);
  EXPECT_EQ(Fp16ToFloat(0x7bff), 65504.0F);
  EXPECT_EQ(Fp16ToFloat(0xfc00), -kInfinity);
}

TEST(Fp16Test, WideningKeepsTheBitsOfNans) {
  EXPECT_EQ(std::bit_cast<uint32_t>(Fp16ToFloat(0x7c01)), 0x7f802000U);
  EXPECT_EQ(std::bit_cast<uint32_t>(Fp16ToFloat(0xfe00)), 0xffc00000U);
}

TEST(Fp16Test, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = Fp16ToFloat(static_cast<uint16_t>(bits));
    const uint32_t want = IsNan(x) ? kCanonicalNanFp16 : bits;
    ASSERT_EQ(FloatToFp16(x), want) << std::hex << bits;
  }
}

TEST(Fp16Test, TiesRoundToEven) {
  EXPECT_EQ(FloatToFp16(2049.0F), FloatToFp16(2048.0F));
  EXPECT_EQ(FloatToFp16(2051.0F), FloatToFp16(2052.0F));
  EXPECT_EQ(FloatToFp16(0x1p-25F), 0x0000);
  EXPECT_EQ(FloatToFp16(3 * 0x1p-25F), 0x0002);
  EXPECT_EQ(FloatToFp16(std::nextafter(0x1p-25F, 1.0F)), 0x0001);
}

TEST(Fp16Test, From65520OnNumbersBecomeInfinite) {
  EXPECT_EQ(FloatToFp16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(FloatToFp16(65520.0F), 0x7c00);
  EXPECT_EQ(FloatToFp16(-65520.0F), 0xfc00);
  EXPECT_EQ(FloatToFp16(3e38F), 0x7c00);
  EXPECT_EQ(FloatToFp16(-kInfinity), 0xfc00);
}

TEST(Fp16Test, EveryNanBecomesTheCanonicalOne) {
  EXPECT_EQ(FloatToFp16(std::bit_cast<float>(0xffffffffU)), 0x7e00);
  EXPECT_EQ(FloatToFp16(std::bit_cast<float>(0x7f800001U)), 0x7e00);
}

TEST(Fp16Test, NoOtherNumberIsNearer) {
  testing::Random random(16);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < 200000; ++i) {
    const float x = std::ldexp(random.Uniform(-2.0F, 2.0F),
                               static_cast<int>(random.Integer(-26, 14)));
    const uint16_t bits = FloatToFp16(x);
    const auto distance = [&](int step) {
      return std::abs(static_cast<double>(
          Fp16ToFloat(static_cast<uint16_t>(bits + step)) - x));
    };
    if ((bits & 0x7fffU) > 0x7bfe || (bits & 0x7fffU) == 0) continue;
    ASSERT_LE(distance(0), distance(1)) << x;
    ASSERT_LE(distance(0), distance(-1)) << x;
  }
}

TEST(DTypeTest, NamesAndSizes) {
  EXPECT_EQ(SizeOf(DType::kFp16), 2);
  EXPECT_STREQ(NameOf(DType::kFp16), "fp16");
  EXPECT_STREQ(NameOf(DType::kBf16), "bf16");
  EXPECT_STREQ(NameOf(DType::kFp32), "fp32");
}

}  // namespace
}  // namespace rowhouse::kernels
