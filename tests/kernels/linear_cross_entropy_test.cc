#include "kernels/linear_cross_entropy.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/exp.h"
#include "kernels/head_loss.h"
#include "kernels/tanh.h"

namespace rowhouse::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

static_assert(Exp(0.0F) == 1.0F);
static_assert(Exp(-0.0F) == 1.0F);
static_assert(ComputeType(DType::kBf16, DType::kBf16) == DType::kBf16);
static_assert(ComputeType(DType::kFp16, DType::kBf16) == DType::kFp32);

// In units of the last place of the wanted value's binade.
double ErrorIn(float got, double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(static_cast<double>(got) - want) / unit;
}

double ErrorOfExp(float x) {
  return ErrorIn(Exp(x), std::exp(static_cast<double>(x)));
}

TEST(ExpTest, IsWithinOneUnitInTheLastPlace) {
  double worst = 0;
  // Every 1009th number of both signs up to the ends of the range.
  for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(104.0F);
       bits += 1009) {
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, ErrorOfExp(-x));
    if (x <= 88.72F) worst = std::max(worst, ErrorOfExp(x));
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.5);  // The measure measures something.
}

TEST(ExpTest, IsZeroFarBelowZero) {
  EXPECT_EQ(Exp(-kInfinity), 0.0F);
  EXPECT_EQ(Exp(-1e30F), 0.0F);
  EXPECT_EQ(Exp(-104.1F), 0.0F);
}

TEST(ExpTest, GivesSubnormalNumbers) {
  EXPECT_EQ(Exp(-103.5F), 0x1p-149F);
  EXPECT_NEAR(Exp(-90.0F) / 8.194e-40F, 1.0F, 1e-4F);
}

TEST(ExpTest, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(Exp(89.0F), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(std::nanf(""))));
}

TEST(TanhTest, IsWithinTwoUnitsInTheLastPlaceAndOdd) {
  double worst = 0;
  for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(12.0F);
       bits += 1009) {
    const auto x = std::bit_cast<float>(bits);
    worst =
        std::max(worst, ErrorIn(Tanh(x), std::tanh(static_cast<double>(x))));
    EXPECT_EQ(Tanh(-x), -Tanh(x)) << x;
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_GT(worst, 0.5);
}

TEST(TanhTest, ReachesOneAndKeepsNan) {
  EXPECT_EQ(Tanh(kInfinity), 1.0F);
  EXPECT_EQ(Tanh(-kInfinity), -1.0F);
  EXPECT_EQ(Tanh(10.0F), 1.0F);
  EXPECT_TRUE(std::isnan(Tanh(std::nanf(""))));
}

// Statistics of slices, one token each.
struct Slices {
  std::vector<float> max;
  std::vector<float> sum;
  std::vector<float> target;

  struct Merged {
    float max, sum, target;
  };
  Merged Merge() {
    std::vector<HeadStatistics> views;
    for (size_t s = 0; s < max.size(); ++s) {
      views.push_back({&max[s], &sum[s], &target[s]});
    }
    Merged merged{};
    MergeHeadStatistics(views, 1, {&merged.max, &merged.sum, &merged.target});
    return merged;
  }
};

TEST(MergeHeadStatisticsTest, ScalesEachSumToTheLargestLogit) {
  // Logits 0, 0 | ln 4 | ln 2: the sum is 4 * (0.25 + 0.25 + 1 + 0.5) = 8.
  const float ln2 = std::log(2.0F);
  Slices slices = {{0.0F, 2 * ln2, ln2}, {2.0F, 1.0F, 1.0F}, {0.0F, 0.0F, ln2}};
  const Slices::Merged merged = slices.Merge();
  EXPECT_EQ(merged.max, 2 * ln2);
  EXPECT_NEAR(merged.sum, 2.0F, 1e-6F);
  EXPECT_EQ(merged.target, ln2);
  EXPECT_NEAR(HeadLoss(merged.max, merged.sum, merged.target), std::log(4.0F),
              1e-6F);
}

TEST(MergeHeadStatisticsTest, ASliceWithoutRowsAddsNothing) {
  Slices slices = {
      {-kInfinity, 3.0F, -kInfinity}, {0.0F, 1.5F, 0.0F}, {0.0F, 2.0F, 0.0F}};
  const Slices::Merged merged = slices.Merge();
  EXPECT_EQ(merged.max, 3.0F);
  EXPECT_EQ(merged.sum, 1.5F);
  EXPECT_EQ(merged.target, 2.0F);
}

TEST(MergeHeadStatisticsTest, NoSliceWithRowsGivesNoSum) {
  Slices slices = {{-kInfinity, -kInfinity}, {0.0F, 0.0F}, {0.0F, 0.0F}};
  const Slices::Merged merged = slices.Merge();
  EXPECT_EQ(merged.max, -kInfinity);
  EXPECT_EQ(merged.sum, 0.0F);
}

TEST(MergeHeadStatisticsTest, ANanSumStays) {
  Slices slices = {{1.0F, 2.0F}, {std::nanf(""), 1.0F}, {0.0F, 0.0F}};
  EXPECT_TRUE(std::isnan(slices.Merge().sum));
}

TEST(MergeHeadStatisticsTest, SumsInSliceOrder) {
  // From the left 2^24 + 1 + 1 stays 2^24; from the right it is 2^24 + 2.
  Slices left = {{0, 0, 0}, {0x1p24F, 1.0F, 1.0F}, {0, 0, 0}};
  Slices right = {{0, 0, 0}, {1.0F, 1.0F, 0x1p24F}, {0, 0, 0}};
  EXPECT_EQ(left.Merge().sum, 0x1p24F);
  EXPECT_EQ(right.Merge().sum, 0x1p24F + 2);
}

TEST(MergeHeadStatisticsTest, AddsWeightedLogitsAndTakesTheFirstOfTheLargest) {
  float max[] = {1.0F, -kInfinity, 3.0F, 3.0F};
  float sum[] = {1.0F, 0.0F, 1.0F, 1.0F};
  float target[] = {0.0F, 0.0F, 3.0F, 0.0F};
  float weighted[] = {0x1p24F, 0.0F, 1.0F, 1.0F};
  int64_t predicted[] = {4, -1, 7, 9};
  std::vector<HeadStatistics> slices;
  for (int s = 0; s < 4; ++s) {
    slices.push_back(
        {max + s, sum + s, target + s, weighted + s, predicted + s});
  }
  float merged[4];
  int64_t row = 0;
  MergeHeadStatistics(slices, 1,
                      {merged, merged + 1, merged + 2, merged + 3, &row});
  EXPECT_EQ(merged[3], 0x1p24F);  // From the left.
  EXPECT_EQ(row, 7);
  MergeHeadStatistics(std::span(slices).subspan(1, 1), 1,
                      {merged, merged + 1, merged + 2, merged + 3, &row});
  EXPECT_EQ(row, -1);
}

TEST(HeadLossTest, PlainCoefficientsAreTheUpstreamGradient) {
  const HeadToken token = {1.0F, 2.5F, 0.5F};
  const double third = 1.0 / 3;
  const HeadCoefficients plain = CoefficientsOf({}, token, third, third);
  EXPECT_EQ(plain.probability, static_cast<float>(third));
  EXPECT_EQ(plain.target, static_cast<float>(third));
  EXPECT_EQ(plain.smoothing, 0.0F);
  EXPECT_EQ(LossOf({}, token).cross_entropy, HeadLoss(1.0F, 2.5F, 0.5F));
  EXPECT_EQ(LossOf({}, token).z_loss, 0.0);
}

TEST(HeadLossTest, KeepsTheSmallSumUnderALargeOffset) {
  // Folded into one log-sum-exp, log 2 would be lost beside 1e8.
  EXPECT_EQ(HeadLoss(1e8F, 2.0F, 1e8F), std::log(2.0F));
}

// 7 tokens, 10 rows in two blocks, each with room to be a multiple of 8 wide.
TEST(HeadKeptTest, HoldsColumnSumsThenStatisticsThenRows) {
  HeadSlice slice;
  slice.row_count = 10;
  slice.dim = 4;
  // 7 * 3 floats; then bf16: 7 * (10 + 2 * 8) * 2 = 364 bytes, 7 * 8 * 2 = 112
  // of them for the first block.
  const HeadKept plain = HeadKept::Of(slice, 7, DType::kBf16, {3, 5});
  EXPECT_EQ(plain.statistics_offset, 0);
  EXPECT_EQ(plain.gradient_offset, 256);
  EXPECT_EQ(plain.least_bytes, 256 + 112);
  EXPECT_EQ(plain.size_bytes, 256 + 512);
  // Mixed types: fp32, 728 bytes.
  EXPECT_EQ(HeadKept::Of(slice, 7, DType::kFp16, {3, 5}).size_bytes, 256 + 768);
  const float bias = 0;
  slice.bias = &bias;
  // Three token blocks of 10 sums.
  const HeadKept kept = HeadKept::Of(slice, 7, DType::kBf16, {3, 5});
  EXPECT_EQ(kept.statistics_offset, 256);
  EXPECT_EQ(kept.gradient_offset, 256 + 256);
  EXPECT_EQ(kept.size_bytes, 256 + 256 + 512);
}

// Blocks of more rows than `kMostRows`, a little more than whole tiles: 6 of 53
// tiles, of which a cut into 8,192 rows has 6 of 52.
TEST(HeadKeptTest, HasRoomForTheTilesOfLargerBlocks) {
  HeadSlice slice;
  slice.row_count = 49126;
  slice.dim = 8;
  const HeadKept kept = HeadKept::Of(slice, 64, DType::kBf16, {64, 8321});
  const int64_t floats = (kept.gradient_offset - kept.statistics_offset) / 4;
  EXPECT_GE(floats, 64 * (1 + 5 * 53 + (49126 - 5 * 8321 + 159) / 160));
}

TEST(HeadKeptTest, KeepsTheBlocksOfRowsThatLieInItWhole) {
  HeadKept kept;
  kept.gradient_offset = 1000;
  // Blocks of 16, 16 and 4 rows of 10 bytes, the last one as wide as 8.
  const BlockCut rows = {36, 16};
  const struct {
    int64_t kept_bytes;
    int64_t rows;
  } cases[] = {{0, 0},     {1000, 0},  {1159, 0},  {1160, 16},   {1319, 16},
               {1320, 32}, {1399, 32}, {1400, 36}, {1 << 20, 36}};
  for (const auto& [kept_bytes, wanted] : cases) {
    EXPECT_EQ(kept.RowsIn(kept_bytes, rows, 10), wanted) << kept_bytes;
  }
  EXPECT_EQ(kept.RowsIn(1000, rows, 0), 36);  // Without tokens.
  EXPECT_EQ(kept.RowsIn(1000, {0, 16}, 10), 0);
}

TEST(HeadKeptTest, BlocksOfRowsHaveAMultipleOf8AndAreNoMoreThanFit) {
  EXPECT_EQ(HeadKept::Stride(1), 8);
  EXPECT_EQ(HeadKept::Stride(8), 8);
  EXPECT_EQ(HeadKept::Stride(8191), 8192);
  HeadSlice slice;
  slice.row_count = 3 * HeadKept::kMostRows;
  const HeadKept kept = HeadKept::Of(slice, 1, DType::kBf16, {1, 100000});
  // The target's logit and the largest of 3 * 52 tiles.
  EXPECT_EQ(kept.gradient_offset, 768);
  // Three blocks, however many rows one may have: 2 * (3 * 8192 + 3 * 8).
  EXPECT_EQ(kept.size_bytes, 768 + 49408);
  EXPECT_EQ(kept.least_bytes, 768 + 2 * 3 * 8192);
}

}  // namespace
}  // namespace rowhouse::kernels
