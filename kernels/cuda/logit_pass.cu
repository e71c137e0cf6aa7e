#include <limits>

#include "kernels/cuda/head_fold.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_pass.h"
#include "kernels/exp.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr float kStepsPerOctave = 512.0F;
constexpr float kLog2E = 1.44269504088896341F;
constexpr unsigned kLastCode = 65535;
constexpr int kLogits = 4;  // Of one load.
constexpr int kLoads = HeadKept::kMostRows / (kThreads * kLogits);

// 2^x within 2 units in the last place; 0 below 2^-126.
__device__ float PowerOfTwo(float x) {
  float power = 0.0F;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

__device__ unsigned CodeOf(float logit, float largest) {
  // Infinite steps become the largest integer, NaN 0: the token's sum says that
  // it is NaN.
  const float steps = (largest - logit) * (kStepsPerOctave * kLog2E);
  return min(__float2uint_rn(steps), kLastCode);
}

// e^(logit - largest) of the code.
__device__ float Decode(unsigned code) {
  return PowerOfTwo(static_cast<float>(code) * (-1.0F / kStepsPerOctave));
}

__device__ float Larger(float a, float b) { return a > b ? a : b; }

// A token's logits of a block of rows, and the largest, by a block of threads;
// -inf beyond the rows.
class TokenLogits {
 public:
  __device__ TokenLogits(const float* row, int count) {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int j = First(k);
      float4 x = {kNone, kNone, kNone, kNone};
      if (j < count) x = __ldcs(reinterpret_cast<const float4*>(row + j));
      x_[k][0] = x.x;
      x_[k][1] = j + 1 < count ? x.y : kNone;
      x_[k][2] = j + 2 < count ? x.z : kNone;
      x_[k][3] = j + 3 < count ? x.w : kNone;
    }
    float largest = kNone;
    ForEach([&](float x, int) { largest = Larger(x, largest); });
    largest_ = FoldBlock(largest, Larger);
  }

  __device__ static int First(int k) {
    return (k * kThreads + static_cast<int>(threadIdx.x)) * kLogits;
  }
  __device__ float largest() const { return largest_; }
  __device__ float at(int k, int c) const { return x_[k][c]; }

  template <typename Visit>
  __device__ void ForEach(Visit visit) const {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
#pragma unroll
      for (int c = 0; c < kLogits; ++c) visit(x_[k][c], First(k) + c);
    }
  }

 private:
  static constexpr float kNone = -std::numeric_limits<float>::infinity();

  float x_[kLoads][kLogits];
  float largest_;
};

// A block of threads a token.
template <bool kKeep>
__global__ void __launch_bounds__(kThreads)
    StatisticsKernel(const float* __restrict__ logits, PassBlock block,
                     const float* __restrict__ class_weights,
                     const int64_t* __restrict__ targets,
                     HeadStatistics statistics, KeptBlock kept) {
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int64_t stride = HeadKept::Stride(block.rows.count);
  const float* const row = logits + at * stride;
  const int count = static_cast<int>(block.rows.count);
  const TokenLogits mine(row, count);
  HeadPair pair;
  pair.max = mine.largest();
  const float shift = pair.Shift();
  // A term is within (4 + |x - shift|) * 2^-23 of itself.
  mine.ForEach([&](float x, int) {
    pair.sum = pair.sum + PowerOfTwo((x - shift) * kLog2E);
  });
  pair.sum = FoldBlock(pair.sum, [](float a, float b) { return a + b; });
  const int64_t target = targets[token] - block.rows.first;
  if constexpr (kKeep) {
    uint16_t* const codes = kept.codes + at * stride;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int j = TokenLogits::First(k);
      if (j >= count) continue;
      uint2 packed;
      packed.x = CodeOf(mine.at(k, 0), mine.largest()) |
                 CodeOf(mine.at(k, 1), mine.largest()) << 16;
      packed.y = CodeOf(mine.at(k, 2), mine.largest()) |
                 CodeOf(mine.at(k, 3), mine.largest()) << 16;
      __stcs(reinterpret_cast<uint2*>(codes + j), packed);
    }
    if (threadIdx.x == 0) {
      kept.largest[token] = mine.largest();
      if (target >= 0 && target < count) {
        kept.target_logits[token] = row[target];
      }
    }
  }
  MergeToken(
      block.rows, token, target, pair, class_weights,
      [&](int64_t j) { return row[j]; }, statistics);
}

// What a token's logits become its gradient by.
struct TokenScale {
  float of_block;  // Of a decoded code.
  float of_max;    // Of e^(logit - max).
  float max;
  float target;

  __device__ TokenScale(const HeadMerged& merged, int64_t token, float largest)
      : of_max(merged.probability[token] / merged.exp_sums[token]),
        max(merged.max_logits[token]),
        target(merged.target[token]) {
    of_block = Exp(largest - max) * of_max;
  }

  __device__ float Target(float logit) const {
    return Exp(logit - max) * of_max - target;
  }
};

__device__ bool TakesPart(const HeadMerged& merged, int64_t token) {
  return merged.probability[token] != 0.0F || merged.target[token] != 0.0F;
}

__device__ uint32_t NarrowPair(float low, float high) {
  uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__global__ void __launch_bounds__(kThreads)
    GradientKernel(const float* __restrict__ logits, PassBlock block,
                   const int64_t* __restrict__ targets, HeadMerged merged,
                   uint16_t* __restrict__ gradient) {
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int64_t stride = HeadKept::Stride(block.rows.count);
  const int count = static_cast<int>(block.rows.count);
  uint16_t* const to = gradient + at * stride;
  if (!TakesPart(merged, token)) {
    for (int j = static_cast<int>(threadIdx.x) * kLogits; j < count;
         j += kThreads * kLogits) {
      *reinterpret_cast<uint2*>(to + j) = uint2{0, 0};
    }
    return;
  }
  const TokenLogits mine(logits + at * stride, count);
  const TokenScale scale(merged, token, mine.largest());
  const int64_t target = targets[token] - block.rows.first;
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int first = TokenLogits::First(k);
    if (first >= count) continue;
    float value[kLogits];
#pragma unroll
    for (int c = 0; c < kLogits; ++c) {
      const float x = mine.at(k, c);
      value[c] = first + c == target
                     ? scale.Target(x)
                     : Decode(CodeOf(x, mine.largest())) * scale.of_block;
    }
    const uint2 packed = {NarrowPair(value[0], value[1]),
                          NarrowPair(value[2], value[3])};
    __stcs(reinterpret_cast<uint2*>(to + first), packed);
  }
}

__global__ void __launch_bounds__(kThreads)
    KeptGradientKernel(KeptBlock kept, PassBlock block,
                       const int64_t* __restrict__ targets, HeadMerged merged) {
  constexpr int kCodes = 8;  // Of one load.
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int count = static_cast<int>(block.rows.count);
  uint16_t* const row = kept.codes + at * HeadKept::Stride(block.rows.count);
  const bool takes_part = TakesPart(merged, token);
  const TokenScale scale(merged, token, kept.largest[token]);
  const int64_t target = targets[token] - block.rows.first;
  for (int first = static_cast<int>(threadIdx.x) * kCodes; first < count;
       first += kThreads * kCodes) {
    uint4 packed = {0, 0, 0, 0};
    if (takes_part) {
      packed = __ldcs(reinterpret_cast<const uint4*>(row + first));
      auto* const pairs = reinterpret_cast<uint32_t*>(&packed);
#pragma unroll
      for (int i = 0; i < kCodes / 2; ++i) {
        float value[2] = {Decode(pairs[i] & 0xffffU) * scale.of_block,
                          Decode(pairs[i] >> 16) * scale.of_block};
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          if (first + 2 * i + c == target) {
            value[c] = scale.Target(kept.target_logits[token]);
          }
        }
        pairs[i] = NarrowPair(value[0], value[1]);
      }
    }
    __stcs(reinterpret_cast<uint4*>(row + first), packed);
  }
}

// A block of threads a token.
__global__ void __launch_bounds__(kThreads)
    MaskRowsKernel(const uint16_t* __restrict__ from, int64_t first_token,
                   int64_t dim, HeadMerged merged, uint16_t* __restrict__ to) {
  const int64_t at = blockIdx.x;
  const bool takes_part = TakesPart(merged, first_token + at);
  for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
    to[at * dim + j] = takes_part ? from[at * dim + j] : uint16_t{0};
  }
}

unsigned BlocksOf(const BlockRange& tokens) {
  return static_cast<unsigned>(tokens.count);
}

}  // namespace

cudaError_t LaunchPassStatistics(const float* logits, const PassBlock& block,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadStatistics& statistics,
                                 const KeptBlock& kept, cudaStream_t stream) {
  const auto kernel =
      kept.codes == nullptr ? StatisticsKernel<false> : StatisticsKernel<true>;
  kernel<<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
      logits, block, slice.class_weights, inputs.targets, statistics, kept);
  return cudaGetLastError();
}

cudaError_t LaunchPassGradient(const float* logits, const PassBlock& block,
                               const HeadInputs& inputs,
                               const HeadMerged& merged, uint16_t* gradient,
                               cudaStream_t stream) {
  GradientKernel<<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
      logits, block, inputs.targets, merged, gradient);
  return cudaGetLastError();
}

cudaError_t LaunchPassKeptGradient(const KeptBlock& kept,
                                   const PassBlock& block,
                                   const HeadInputs& inputs,
                                   const HeadMerged& merged,
                                   cudaStream_t stream) {
  KeptGradientKernel<<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
      kept, block, inputs.targets, merged);
  return cudaGetLastError();
}

cudaError_t LaunchMaskRows(const uint16_t* from, const BlockRange& tokens,
                           int64_t dim, const HeadMerged& merged, uint16_t* to,
                           cudaStream_t stream) {
  MaskRowsKernel<<<BlocksOf(tokens), kThreads, 0, stream>>>(from, tokens.first,
                                                            dim, merged, to);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
