#ifndef ROWHOUSE_KERNELS_TANH_H_
#define ROWHOUSE_KERNELS_TANH_H_

#include "kernels/exp.h"

namespace rowhouse::kernels {

/// tanh(x) within 2 units in the last place; exactly 1 above 9.1. Odd; NaN for
/// NaN. Without branches, and the same bits on host and device, as `Exp`.
///
/// Below 0.625 the polynomial is that of Cephes' tanhf (Moshier).
constexpr float Tanh(float x) {
  const float size = x < 0.0F ? -x : x;
  const float square = x * x;
  float p = -5.70498872745e-3F;
  p = p * square + 2.06390887954e-2F;
  p = p * square + -5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square + -3.33332819422e-1F;
  const float near_zero = (p * square) * x + x;
  const float far = 1.0F - 2.0F / (Exp(size + size) + 1.0F);
  const float far_signed = x < 0.0F ? -far : far;
  return size >= 0.625F ? far_signed : near_zero;
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_TANH_H_
