#ifndef ROWHOUSE_KERNELS_CUDA_LOGIT_CODE_CUH_
#define ROWHOUSE_KERNELS_CUDA_LOGIT_CODE_CUH_

/// A logit's 16-bit code (logit_pass.h), and what a token's logit gradient is
/// formed by.

#include <cstdint>

#include "kernels/cuda/logit_pass.h"
#include "kernels/exp.h"

namespace rowhouse::kernels::cuda {

inline constexpr float kStepsPerOctave = 512.0F;
inline constexpr float kLog2E = 1.44269504088896341F;
inline constexpr float kLastCode = 65535.0F;

/// 2^x within 2 units in the last place; 0 below 2^-126.
__device__ inline float PowerOfTwo(float x) {
  float power = 0.0F;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// 1.5 * 2^23: added to it, an integer's last bit is the significand's.
inline constexpr float kCodeZero = 12582912.0F;

/// `kCodeZero` and the code of `octaves`, a logit's distance from the largest,
/// which is not positive; NaN and -inf have the last code. The product is
/// exact, so the sum is rounded to steps once.
__device__ inline float Shifted(float octaves) {
  return fminf(__fmaf_rn(octaves, -kStepsPerOctave, kCodeZero),
               kCodeZero + kLastCode);
}

/// A word whose low 16 bits are the code.
__device__ inline uint32_t CodeOf(float octaves) {
  return __float_as_uint(Shifted(octaves));
}

/// e^(logit - largest) of the code.
__device__ inline float Rounded(float octaves) {
  return PowerOfTwo(__fmaf_rn(Shifted(octaves), -1.0F / kStepsPerOctave,
                              kCodeZero / kStepsPerOctave));
}

__device__ inline uint32_t PackCodes(uint32_t low, uint32_t high) {
  return __byte_perm(low, high, 0x5410);
}

/// The same of a code in the low or high half of `pair`.
template <bool kHigh>
__device__ float Decode(uint32_t pair) {
  constexpr float kZero =
      8388608.0F;  // 2^23, whose low 16 bits the code takes.
  const float code =
      __uint_as_float(__byte_perm(pair, 0x4b000000U, kHigh ? 0x7632 : 0x7610));
  return PowerOfTwo(
      __fmaf_rn(code, -1.0F / kStepsPerOctave, kZero / kStepsPerOctave));
}

/// NaN is never larger.
__device__ inline float Larger(float a, float b) { return fmaxf(a, b); }

__device__ inline float Plus(float a, float b) { return a + b; }

/// e^(logit - max) times what makes it a gradient.
__device__ inline float OfLargest(const TokenScale& scale, float largest) {
  return Exp(largest - scale.max) * scale.of_max;
}

/// The gradient at the target.
__device__ inline float AtTarget(const TokenScale& scale, float logit) {
  return OfLargest(scale, logit) - scale.target;
}

__device__ inline uint32_t NarrowPair(float low, float high) {
  uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Whether `target` is among `count` rows from `first` on.
__device__ inline bool IsAmong(int64_t target, int first, int count) {
  return static_cast<uint64_t>(target - first) < static_cast<uint64_t>(count);
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_LOGIT_CODE_CUH_
