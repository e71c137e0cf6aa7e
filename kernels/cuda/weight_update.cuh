#ifndef ROWHOUSE_KERNELS_CUDA_WEIGHT_UPDATE_CUH_
#define ROWHOUSE_KERNELS_CUDA_WEIGHT_UPDATE_CUH_

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/columns.cuh"

namespace rowhouse::kernels::cuda {

/// `UpdateWeight` for a row of weights, with the row's one division done once.
///
/// Divides as `Quotient` does (kernels/quotient.h, which says why that is
/// right): three operations stand for a division of some twenty. `IsExact` says
/// afterwards, for all elements at once, whether they may.
class WeightUpdate {
 public:
  __device__ WeightUpdate(const RowAdamFactors& factors, float denominator,
                          float sum_of_squares)
      : factors_(factors),
        denominator_(denominator),
        reciprocal_(1.0F / denominator) {
    const float scale = factors.grad_mul;
    // No |g| is above the root of the sum of squares but for its rounding.
    const bool exact = scale >= 0x1p-60F && scale <= 0x1p60F &&
                       sum_of_squares * (scale * scale) < 0x1p118F &&
                       denominator >= 0x1p-60F && denominator <= 0x1p60F;
    least_ = exact ? 0xffffffffU : 0U;
  }

  __device__ float operator()(float p, float g) {
    const float x = g * factors_.grad_mul;
    // Twice the bits leave out the sign; less 1, zero becomes the largest.
    const uint32_t bits = __float_as_uint(x);
    least_ = min(least_, bits + bits - 1U);
    const float q = x * reciprocal_;
    const float excess = __fmaf_rn(q, denominator_, -x);
    const float quotient = __fmaf_rn(-excess, reciprocal_, q);
    const float u = quotient * factors_.step_size;
    const float decayed = u + p * factors_.decay;
    return p - (u * p > 0.0F ? decayed : u);
  }

  /// Whether all calls gave what `UpdateWeight` does.
  __device__ bool IsExact() const {
    constexpr uint32_t kLeastBits = (127U - 60U) << 23;
    return least_ >= 2U * kLeastBits - 1U;
  }

 private:
  RowAdamFactors factors_;
  float denominator_;
  float reciprocal_;
  uint32_t least_;
};

/// Rounds a lane's columns to the nearest and says whether all are finite.
__device__ inline bool NarrowColumns(const float (&x)[kLaneColumns],
                                     Columns<uint16_t>& to) {
  auto* pairs = reinterpret_cast<uint32_t*>(&to);
  uint32_t zeros = 0;  // Of each half: 0, or NaN once one was not finite.
#pragma unroll
  for (int i = 0; i < kLaneColumns / 2; ++i) {
    // Equals FloatToBf16 but for NaNs, and a row with one goes another way.
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(pairs[i])
        : "f"(x[2 * i + 1]), "f"(x[2 * i]));
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(zeros) : "r"(pairs[i]), "r"(0));
  }
  return (zeros & 0x7fff7fffU) == 0;
}

__device__ inline bool NarrowColumns(const float (&x)[kLaneColumns],
                                     Columns<float>& to) {
  bool finite = true;
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) {
    to.x[c] = x[c];
    finite &= IsFinite(x[c]);
  }
  return finite;
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_WEIGHT_UPDATE_CUH_
