#include "kernels/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/row_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }

TEST(Bf16Test, RoundsToNearestTiesToEven) {
  EXPECT_EQ(FloatToBf16(FloatOf(0x3f800000)), 0x3f80);
  EXPECT_EQ(FloatToBf16(FloatOf(0x3f807fff)), 0x3f80);
  EXPECT_EQ(FloatToBf16(FloatOf(0x3f808000)), 0x3f80);  // Tie: stays even.
  EXPECT_EQ(FloatToBf16(FloatOf(0x3f808001)), 0x3f81);
  EXPECT_EQ(FloatToBf16(FloatOf(0x3f818000)), 0x3f82);  // Tie: up to even.
  EXPECT_EQ(FloatToBf16(FloatOf(0xbf818000)), 0xbf82);
}

TEST(Bf16Test, KeepsSignsAndSubnormals) {
  EXPECT_EQ(FloatToBf16(0.0F), 0x0000);
  EXPECT_EQ(FloatToBf16(-0.0F), 0x8000);
  EXPECT_EQ(FloatToBf16(FloatOf(0x00008001)), 0x0001);
  EXPECT_EQ(FloatToBf16(FloatOf(0x80008000)), 0x8000);  // Tie to -0.
  EXPECT_EQ(FloatToBf16(FloatOf(0x007fffff)), 0x0080);  // Becomes normal.
}

TEST(Bf16Test, OverflowsToInfinity) {
  EXPECT_EQ(FloatToBf16(FloatOf(0x7f7f7fff)), 0x7f7f);
  EXPECT_EQ(FloatToBf16(FloatOf(0x7f7f8000)), 0x7f80);
  EXPECT_EQ(FloatToBf16(FloatOf(0xff7fffff)), 0xff80);
  EXPECT_EQ(FloatToBf16(kInfinity), 0x7f80);
}

TEST(Bf16Test, MakesEveryNanCanonical) {
  for (const uint32_t nan : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0xff800001U,
                             0xffc12345U, 0xffffffffU}) {
    EXPECT_EQ(FloatToBf16(FloatOf(nan)), 0x7fc0) << std::hex << nan;
    EXPECT_EQ(BitsOf(Canonical(FloatOf(nan))), 0x7fc00000U) << std::hex << nan;
    EXPECT_FALSE(IsFinite(FloatOf(nan))) << std::hex << nan;
  }
  EXPECT_EQ(BitsOf(Canonical(-0.0F)), 0x80000000U);
  EXPECT_EQ(BitsOf(Canonical(-kInfinity)), 0xff800000U);
}

TEST(Bf16Test, WidensExactlyAndRoundsBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto bf16 = static_cast<uint16_t>(bits);
    const float wide = Bf16ToFloat(bf16);
    EXPECT_EQ(FloatToBf16(wide), IsNan(wide) ? 0x7fc0 : bf16);
  }
}

// 2^24 absorbs each 1 that is added to it alone; ones that a chunk gathered
// first arrive together. So the result tells where the chunks end.
float SumOfBigAndOnes(int ones) {
  RunSum sum;
  sum.Add(0x1p24F);
  for (int i = 0; i < ones; ++i) sum.Add(1.0F);
  return sum.Result();
}

TEST(RunSumTest, CutsRunsIntoChunksOfTen) {
  EXPECT_EQ(SumOfBigAndOnes(8), 0x1p24F);        // 9 entries.
  EXPECT_EQ(SumOfBigAndOnes(9), 0x1p24F);        // 10: one chunk.
  EXPECT_EQ(SumOfBigAndOnes(10), 0x1p24F);       // 11: 2^24 + 1, to even.
  EXPECT_EQ(SumOfBigAndOnes(11), 0x1p24F + 2);   // 12.
  EXPECT_EQ(SumOfBigAndOnes(19), 0x1p24F + 10);  // 20: two whole chunks.
  EXPECT_EQ(SumOfBigAndOnes(20), 0x1p24F + 12);  // 21: + 11, to even.
  EXPECT_EQ(SumOfBigAndOnes(29), 0x1p24F + 20);  // 30.
}

TEST(RunSumTest, StartsFromPlusZero) {
  RunSum sum;
  EXPECT_EQ(BitsOf(sum.Result()), 0U);
  sum.Add(-0.0F);
  EXPECT_EQ(BitsOf(sum.Result()), 0U);
}

float Replay(float v, const std::vector<float>& beta2, int64_t first) {
  std::vector<float> suffix_min = beta2;
  for (size_t e = suffix_min.size() - 1; e-- > 1;) {
    suffix_min[e] = std::min(suffix_min[e], suffix_min[e + 1]);
  }
  return ReplaySecondMoment(v, beta2.data(), suffix_min.data(), first,
                            static_cast<int64_t>(beta2.size()) - 1);
}

float ReplayInFull(float v, const std::vector<float>& beta2, int64_t first) {
  for (size_t e = static_cast<size_t>(first); e < beta2.size(); ++e) {
    v = v * beta2[e];
  }
  return v;
}

TEST(ReplayTest, MultipliesSuccessivelyAndNotByAPower) {
  const std::vector<float> beta2(6, 0.95F);
  EXPECT_EQ(BitsOf(Replay(0.7317F, beta2, 1)), 0x3f10f0e0U);
  const auto closed_form =
      static_cast<float>(double{0.7317F} * std::pow(0.95, 5.0));
  EXPECT_EQ(BitsOf(closed_form), 0x3f10f0e1U);
}

TEST(ReplayTest, StartsAtTheFirstMissedEvent) {
  const std::vector<float> beta2 = {0.0F, 0.5F, 0.25F, 0.125F};
  EXPECT_EQ(Replay(1.0F, beta2, 1), 0x1p-6F);
  EXPECT_EQ(Replay(1.0F, beta2, 3), 0x1p-3F);
  EXPECT_EQ(Replay(1.0F, beta2, 4), 1.0F);
}

TEST(ReplayTest, SkippedEventsChangeNothing) {
  const std::vector<float> beta2 = {0.0F, 1.0F, 0.5F, 1.0F, 1.0F, 0.5F, 1.0F};
  EXPECT_EQ(Replay(3.0F, beta2, 1), 0.75F);
  EXPECT_EQ(Replay(3.0F, std::vector<float>(1000, 1.0F), 1), 3.0F);
}

TEST(ReplayTest, SticksAtASubnormalAndNeverAtZero) {
  const std::vector<float> beta2(20001, 0.95F);
  const float stuck = Replay(0.7317F, beta2, 1);
  EXPECT_GT(stuck, 0.0F);
  EXPECT_LT(stuck, std::numeric_limits<float>::min());
  EXPECT_EQ(stuck * 0.95F, stuck);
  EXPECT_EQ(BitsOf(stuck), BitsOf(ReplayInFull(0.7317F, beta2, 1)));
}

TEST(ReplayTest, EqualsTheFullLoopForLongGaps) {
  Random random(20240611);
  SCOPED_TRACE(random.Trace());
  for (int round = 0; round < 200; ++round) {
    std::vector<float> beta2(static_cast<size_t>(random.Integer(2, 9000)));
    for (float& b : beta2) {
      b = random.Chance(0.05) ? 1.0F : random.Uniform(0.85F, 1.0F);
    }
    // Any exponent, subnormals too.
    const float v =
        FloatOf(static_cast<uint32_t>(random.Integer(0, 0x7f7fffff)));
    const int64_t first = random.Integer(1, static_cast<int64_t>(beta2.size()));
    ASSERT_EQ(BitsOf(Replay(v, beta2, first)),
              BitsOf(ReplayInFull(v, beta2, first)))
        << "v bits " << BitsOf(v) << " first " << first;
  }
}

// On x86 the sign of such a NaN is set, elsewhere not; and a replay a little
// later would have found it and made it canonical.
TEST(ReplayTest, MakesTheNanOfInfinityTimesZeroCanonical) {
  volatile float infinity = kInfinity;  // Not computed by the compiler.
  EXPECT_EQ(BitsOf(Replay(infinity, {0.0F, 0.0F}, 1)), 0x7fc00000U);
  EXPECT_EQ(BitsOf(Replay(infinity, {0.0F, 0.0F, 0.5F}, 1)), 0x7fc00000U);
}

TEST(ReplayTest, KeepsInfinityAndMakesNanCanonical) {
  const std::vector<float> beta2(10, 0.95F);
  EXPECT_EQ(Replay(kInfinity, beta2, 1), kInfinity);
  EXPECT_EQ(BitsOf(Replay(FloatOf(0xffc00001), beta2, 1)), 0x7fc00000U);
}

TEST(RowAdamTest, GateUsesThePlainUpdateAndTheOldWeight) {
  // u = 1 * 1 / 1 * 0.5; decay adds p / 4 only where u and p agree in sign.
  const RowAdamFactors f = {0.5F, 0.25F, 0.95F, 0.0F, 1.0F, 1.0F};
  EXPECT_EQ(UpdateWeight(2.0F, 1.0F, 1.0F, f), 1.0F);
  EXPECT_EQ(UpdateWeight(-2.0F, 1.0F, 1.0F, f), -2.5F);
  EXPECT_EQ(UpdateWeight(0.0F, 1.0F, 1.0F, f), -0.5F);
  // The product of u and p underflows to zero: no decay.
  const RowAdamFactors steep = {0.5F, 3e38F, 0.95F, 0.0F, 1.0F, 1.0F};
  EXPECT_EQ(UpdateWeight(0x1p-149F, 1.0F, 1.0F, steep), -0.5F);
  EXPECT_LT(UpdateWeight(0x1p-148F, 1.0F, 1.0F, steep), -0.5F);
}

TEST(RowAdamTest, RoundsEachStepOfTheSecondMoment) {
  // Fused, 1.12 * 0.9 + 0.3 * 0.7 would have other bits.
  const RowAdamFactors f = {0, 0, 0.9F, 0, 0, 0.7F};
  const volatile float kept = 1.12F * 0.9F;
  const volatile float added = 0.3F * 0.7F;
  EXPECT_EQ(UpdateSecondMoment(1.12F, 0.3F, f), kept + added);
  EXPECT_NE(std::fma(1.12F, 0.9F, added), kept + added);
}

TEST(NarrowScalarsTest, FoldsScaleAndDivisorInDouble) {
  const RowAdamFactors f =
      NarrowScalars(RowAdamScalars{0.5, 0.25, 0.95, 1e-10, 0.1}, 4);
  EXPECT_EQ(f.step_size, 0.5F);
  EXPECT_EQ(f.decay, 0.25F);
  EXPECT_EQ(f.beta2, 0.95F);
  EXPECT_EQ(f.eps, 1e-10F);
  EXPECT_EQ(f.grad_mul, static_cast<float>(0.025));
  EXPECT_EQ(f.sq_mul, static_cast<float>((1.0 - 0.95) * (0.025 * 0.025)));
}

}  // namespace
}  // namespace rowhouse::kernels
