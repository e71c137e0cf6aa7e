#include "kernels/quotient.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

constexpr int64_t kLeast = int64_t{1} << 23;  // Significands as integers.
constexpr int64_t kEnd = int64_t{1} << 24;

// 2^-shift modulo an odd number.
int64_t PowerOfHalf(int shift, int64_t modulus) {
  int64_t x = 1 % modulus;
  for (int i = 0; i < shift; ++i) x = (x % 2 != 0 ? x + modulus : x) / 2;
  return x;
}

// With significands `a` and `b`, the quotient in units of its last place is
// a * 2^places / b, and the middle of two numbers is m / 2 for an odd m. Their
// difference is c / (2 * b) with c = a * 2^(places + 1) - m * b, and below
// 1.5 * 2^-24 only where |c| < 3. For each `b` and `c`, all such `a` are those
// of one residue; an even `b` halves both sides as long as it can.
TEST(QuotientTest, IsADivisionWhereItCouldFail) {
  int64_t tried = 0;
  int64_t wrong = 0;
  for (int64_t b = kLeast; b < kEnd; ++b) {
    const int common = std::countr_zero(static_cast<uint64_t>(b));
    if (common > 1) continue;  // No |c| below 4 is as even.
    const int64_t odd = b >> common;
    const Quotient quotient(std::ldexp(static_cast<float>(b), -23));
    for (const int places : {23, 24}) {
      const int64_t unit = PowerOfHalf(places + 1 - common, odd);
      for (const int c : {-3, -2, -1, 1, 2, 3}) {
        if (c % (1 << common) != 0) continue;
        const int64_t residue = (c / (1 << common) * unit % odd + odd) % odd;
        for (int64_t a = residue; a < kEnd; a += odd) {
          const bool below_one = a < b;
          if (a < kLeast || below_one != (places == 24)) continue;
          const int64_t m = ((a << (places + 1)) - c) / b;
          ASSERT_EQ(m * b + c, a << (places + 1));
          if (m % 2 == 0) continue;
          const float x = std::ldexp(static_cast<float>(a), -23);
          const float expected = x / std::ldexp(static_cast<float>(b), -23);
          wrong += quotient.Of(x) == expected ? 0 : 1;
          ++tried;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(tried, 17'000'000);
}

TEST(QuotientTest, IsADivisionOfAllItServes) {
  Random random(71);
  SCOPED_TRACE(random.Trace());
  const auto value = [&] {
    const auto significand = static_cast<float>(random.Integer(kLeast, kEnd));
    const auto exponent = static_cast<int>(random.Integer(-60, 59));
    return std::ldexp(significand, exponent - 23);
  };
  for (int i = 0; i < 100'000; ++i) {
    const float divisor = value();
    ASSERT_TRUE(Quotient::Serves(divisor));
    const Quotient quotient(divisor);
    for (const float x : {value(), -value(), 0.0F, -0.0F}) {
      ASSERT_EQ(std::bit_cast<uint32_t>(quotient.Of(x)),
                std::bit_cast<uint32_t>(x / divisor))
          << x << " / " << divisor;
    }
  }
}

TEST(QuotientTest, ServesNoDivisorBeyondItsBounds) {
  for (const float divisor : {0.0F, -1.0F, 0x1p-61F, 0x1p61F, NAN, INFINITY}) {
    EXPECT_FALSE(Quotient::Serves(divisor)) << divisor;
  }
}

}  // namespace
}  // namespace rowhouse::kernels
