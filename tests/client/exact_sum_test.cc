#include "client/internal/exact_sum.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace rowhouse::client::internal {
namespace {

constexpr int kExponents = 255;

// Sums with these values, by biased exponent.
std::vector<int64_t> Sums(
    std::initializer_list<std::pair<int, int64_t>> values) {
  std::vector<int64_t> sums(kExponents);
  for (const auto& [exponent, value] : values) sums[exponent] = value;
  return sums;
}

TEST(ExactSumTest, NothingIsZero) {
  EXPECT_EQ(RoundExactSum(Sums({})), 0.0);
  EXPECT_EQ(RoundExactSum({}), 0.0);
}

TEST(ExactSumTest, OneIsItsSignificandTimesItsUnit) {
  // 1.0F has exponent 127 and significand 2^23.
  EXPECT_EQ(RoundExactSum(Sums({{127, int64_t{1} << 23}})), 1.0);
}

TEST(ExactSumTest, SubnormalsCountInUnitsOfTheSmallest) {
  EXPECT_EQ(RoundExactSum(Sums({{1, 1}})), 0x1p-149);
  EXPECT_EQ(RoundExactSum(Sums({{1, 5}, {2, 3}})), 0x1p-149 * 11);
}

TEST(ExactSumTest, ExponentZeroMeansTheSameAsOne) {
  EXPECT_EQ(RoundExactSum(Sums({{0, 7}})), RoundExactSum(Sums({{1, 7}})));
}

TEST(ExactSumTest, NearestIsTaken) {
  // 2^53 + 1 + 1/2: above the middle of 2^53 and 2^53 + 2.
  EXPECT_EQ(RoundExactSum(Sums({{150, (int64_t{1} << 53) + 1}, {149, 1}})),
            9007199254740994.0);
  // 2^53 + 1/2.
  EXPECT_EQ(RoundExactSum(Sums({{150, int64_t{1} << 53}, {149, 1}})),
            9007199254740992.0);
}

TEST(ExactSumTest, TiesGoToEven) {
  EXPECT_EQ(RoundExactSum(Sums({{150, (int64_t{1} << 53) + 1}})),
            9007199254740992.0);
  EXPECT_EQ(RoundExactSum(Sums({{150, (int64_t{1} << 53) + 3}})),
            9007199254740996.0);
}

TEST(ExactSumTest, TheSmallestBitBreaksATie) {
  EXPECT_EQ(RoundExactSum(Sums({{150, (int64_t{1} << 53) + 1}, {1, 1}})),
            9007199254740994.0);
}

TEST(ExactSumTest, RoundingCarriesIntoTheNextPowerOfTwo) {
  // 2^54 - 1 is a tie between 2^54 - 2 and 2^54.
  EXPECT_EQ(RoundExactSum(Sums({{150, (int64_t{1} << 54) - 1}})),
            18014398509481984.0);
}

TEST(ExactSumTest, SumsOfExponentsCarryOverWords) {
  // (2^63 - 1) + (2^63 - 1) + 2, in units of 2^-149.
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(RoundExactSum(Sums({{0, kMax}, {1, kMax}, {2, 1}})), 0x1p-85);
}

TEST(ExactSumTest, TheLargestSumIsInRange) {
  const std::vector<int64_t> sums(kExponents,
                                  std::numeric_limits<int64_t>::max());
  // 2^63 * (1 + 1 + 2 + ... + 2^253) = 2^63 * 2^254, less 2^254: a tie, or
  // nearly, that rounds up; in units of 2^-149.
  EXPECT_EQ(RoundExactSum(sums), 0x1p168);
}

TEST(ExactSumTest, BitsFarApartRoundOnce) {
  // The last place of 2^100 is 2^48: 2^-149 is far below it, 3 * 2^47 a tie.
  EXPECT_EQ(RoundExactSum(Sums({{250, 1}, {1, 1}})), 0x1p100);
  EXPECT_EQ(RoundExactSum(Sums({{250, 1}, {197, 3}})), 0x1.0000000000002p100);
}

}  // namespace
}  // namespace rowhouse::client::internal
