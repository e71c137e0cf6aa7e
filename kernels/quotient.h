#ifndef ROWHOUSE_KERNELS_QUOTIENT_H_
#define ROWHOUSE_KERNELS_QUOTIENT_H_

#include <cstdint>

namespace rowhouse::kernels {

/// Divides by one number many times, without a division: with `y` the correctly
/// rounded reciprocal of the divisor `d`, `q = x*y` and `r = q*d - x`, `q -
/// r*y` is the correctly rounded `x / d` (after Markstein 1990), where nothing
/// on the way is subnormal, overflows or is not finite. `r` is exact. `q` is
/// within 1.5 units in the last place, and `y*d` within 2^-24 of 1, so what is
/// rounded last differs from `x / d` by less than 1.5 * 2^-24 of a unit: the
/// result could be wrong only where `x / d` is as close to the middle of two
/// numbers. tests/kernels/quotient_test.cc tries all those, some 17 million.
class Quotient {
 public:
  explicit Quotient(float divisor)
      : divisor_(divisor), reciprocal_(1.0F / divisor) {}

  /// Whether this serves any `x` that is 0 or in [2^-60, 2^60] without sign.
  static bool Serves(float divisor) {
    return divisor >= 0x1p-60F && divisor <= 0x1p60F;
  }

  /// `x / divisor`, rounded as a division would. A zero keeps its sign.
  float Of(float x) const {
    const float q = x * reciprocal_;
    const float r = __builtin_fmaf(q, divisor_, -x);
    return __builtin_fmaf(-r, reciprocal_, q);
  }

 private:
  float divisor_;
  float reciprocal_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_QUOTIENT_H_
