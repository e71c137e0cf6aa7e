#ifndef ROWHOUSE_KERNELS_EXP_H_
#define ROWHOUSE_KERNELS_EXP_H_

#include <bit>
#include <cstdint>

namespace rowhouse::kernels {

/// e^x within 1 unit in the last place, that of subnormal results too (all
/// arguments checked). Exactly 1 at 0 and 0 at -inf and
/// below -104; infinity above 88.73; NaN for NaN. Without branches, so loops of
/// it become vector code; compiled as arithmetic.h is, so that host and device
/// give the same bits.
///
/// `x = n*ln2 + r` with |r| <= ln2/2; the polynomial is that of Cephes' expf
/// (Moshier).
constexpr float Exp(float x) {
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693359375F;  // n*kLn2High is exact.
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kToInteger = 12582912.0F;  // 1.5 * 2^23: the last place is 1.

  // NaN passes both.
  const float capped = x > 89.0F ? 89.0F : x;
  const float y = capped < -104.0F ? -104.0F : capped;
  const float shifted = y * kLog2E + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (y - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = (p * (r * r) + r) + 1.0F;
  // 2^n as two factors: n reaches beyond the exponents of normal numbers.
  const int32_t exponent =
      std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kToInteger);
  const int32_t half = exponent >> 1;
  const auto power = [](int32_t e) {
    return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23);
  };
  return (p * power(half)) * power(exponent - half);
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_EXP_H_
