#include <limits>
#include <type_traits>

#include "kernels/cuda/head_fold.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_pass.h"
#include "kernels/exp.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr float kStepsPerOctave = 512.0F;
constexpr float kLog2E = 1.44269504088896341F;
constexpr float kLastCode = 65535.0F;
constexpr int kLogits = 4;  // Of one load.
constexpr int kCodes = 8;   // Of one load.
constexpr int kMostLoads = HeadKept::kMostRows / (kThreads * kLogits);

// 2^x within 2 units in the last place; 0 below 2^-126.
__device__ float PowerOfTwo(float x) {
  float power = 0.0F;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// A float whose low 16 bits are the code of `octaves`, a logit's distance from
// the largest, which is not positive; NaN and -inf have the last code. The
// product is exact, so the sum is rounded to steps once.
__device__ uint32_t CodeOf(float octaves) {
  constexpr float kInteger = 12582912.0F;  // 1.5 * 2^23: an integer's last bit
                                           // is the significand's.
  return __float_as_uint(fminf(__fmaf_rn(octaves, -kStepsPerOctave, kInteger),
                               kInteger + kLastCode));
}

__device__ uint32_t PackCodes(uint32_t low, uint32_t high) {
  return __byte_perm(low, high, 0x5410);
}

// e^(logit - largest) of a code, the low or high half of `pair`.
template <bool kHigh>
__device__ float Decode(uint32_t pair) {
  constexpr uint32_t kInteger =
      0x4b000000;  // 2^23, which the code is added to.
  const float code =
      __uint_as_float(__byte_perm(pair, kInteger, kHigh ? 0x7632 : 0x7610));
  return PowerOfTwo(
      __fmaf_rn(code, -1.0F / kStepsPerOctave, 8388608.0F / kStepsPerOctave));
}

__device__ float Larger(float a, float b) { return a > b ? a : b; }

// A token's logits of a block of rows, and the largest, by a block of threads,
// in `kLoads` loads of each thread; -inf beyond the rows.
template <int kLoads>
class TokenLogits {
 public:
  __device__ TokenLogits(const float* row, int count) {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int j = First(k);
      float4 x = {kNone, kNone, kNone, kNone};
      if (j < count) x = __ldcs(reinterpret_cast<const float4*>(row + j));
      if (j < count && count < j + kLogits) {
        if (j + 1 >= count) x.y = kNone;
        if (j + 2 >= count) x.z = kNone;
        x.w = kNone;
      }
      x_[k][0] = x.x;
      x_[k][1] = x.y;
      x_[k][2] = x.z;
      x_[k][3] = x.w;
    }
    float largest = kNone;
    ForEach([&](float x) { largest = Larger(x, largest); });
    pair_.max = FoldBlock(largest, Larger);
    shift_ = pair_.Shift();
  }

  __device__ static int First(int k) {
    return (k * kThreads + static_cast<int>(threadIdx.x)) * kLogits;
  }
  __device__ float largest() const { return pair_.max; }
  __device__ float at(int k, int c) const { return x_[k][c]; }
  // How far a logit lies below the largest.
  __device__ float Octaves(int k, int c) const {
    return (x_[k][c] - shift_) * kLog2E;
  }

 private:
  static constexpr float kNone = -std::numeric_limits<float>::infinity();

  template <typename Visit>
  __device__ void ForEach(Visit visit) const {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
#pragma unroll
      for (int c = 0; c < kLogits; ++c) visit(x_[k][c]);
    }
  }

  float x_[kLoads][kLogits];
  HeadPair pair_;
  float shift_;
};

// A block of threads a token.
template <int kLoads, bool kKeep>
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
  const auto logit = [&](int64_t j) { return row[j]; };
  const TokenStart start(block.rows, token, targets[token] - block.rows.first,
                         logit, statistics);
  const TokenLogits<kLoads> mine(row, count);
  HeadPair pair;
  pair.max = mine.largest();
  uint16_t* const codes = kKeep ? kept.codes + at * stride : nullptr;
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    uint32_t code[kLogits];
#pragma unroll
    for (int c = 0; c < kLogits; ++c) {
      const float octaves = mine.Octaves(k, c);
      // A term is within (4 + |octaves|) * 2^-23 of itself.
      pair.sum = pair.sum + PowerOfTwo(octaves);
      code[c] = CodeOf(octaves);
    }
    const int j = TokenLogits<kLoads>::First(k);
    if (kKeep && j < count) {
      __stcs(reinterpret_cast<uint2*>(codes + j),
             uint2{PackCodes(code[0], code[1]), PackCodes(code[2], code[3])});
    }
  }
  pair.sum = FoldBlock(pair.sum, [](float a, float b) { return a + b; });
  if (kKeep && threadIdx.x == 0) {
    kept.largest[token] = mine.largest();
    if (start.has_target) kept.target_logits[token] = start.target_logit;
  }
  MergeToken(block.rows, token, start, pair, class_weights, logit, statistics);
}

// What a token's logits become its gradient by.
struct TokenScale {
  float probability;
  float exp_sum;
  float max;
  float target;

  __device__ TokenScale(const HeadMerged& merged, int64_t token)
      : probability(merged.probability[token]),
        exp_sum(merged.exp_sums[token]),
        max(merged.max_logits[token]),
        target(merged.target[token]) {}

  __device__ bool TakesPart() const {
    return probability != 0.0F || target != 0.0F;
  }
  // Of e^(logit - max).
  __device__ float OfMax() const { return probability / exp_sum; }
  // Of a decoded code.
  __device__ float OfBlock(float largest) const {
    return Exp(largest - max) * OfMax();
  }
  __device__ float Target(float logit) const {
    return Exp(logit - max) * OfMax() - target;
  }
};

__device__ uint32_t NarrowPair(float low, float high) {
  uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Whether `target` is among `count` rows from `first` on.
__device__ bool IsAmong(int64_t target, int first, int count) {
  return static_cast<uint64_t>(target - first) < static_cast<uint64_t>(count);
}

template <int kLoads>
__global__ void __launch_bounds__(kThreads)
    GradientKernel(const float* __restrict__ logits, PassBlock block,
                   const int64_t* __restrict__ targets, HeadMerged merged,
                   uint16_t* __restrict__ gradient) {
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int64_t stride = HeadKept::Stride(block.rows.count);
  const int count = static_cast<int>(block.rows.count);
  uint16_t* const to = gradient + at * stride;
  const TokenScale scale(merged, token);
  const int64_t target = targets[token] - block.rows.first;
  const TokenLogits<kLoads> mine(logits + at * stride, count);
  const bool takes_part = scale.TakesPart();
  const float of_block = scale.OfBlock(mine.largest());
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int first = TokenLogits<kLoads>::First(k);
    if (first >= count) continue;
    float value[kLogits];
#pragma unroll
    for (int c = 0; c < kLogits; ++c) {
      value[c] = Decode<false>(CodeOf(mine.Octaves(k, c))) * of_block;
    }
    if (IsAmong(target, first, kLogits)) {
#pragma unroll
      for (int c = 0; c < kLogits; ++c) {
        if (first + c == target) value[c] = scale.Target(mine.at(k, c));
      }
    }
    uint2 packed = {NarrowPair(value[0], value[1]),
                    NarrowPair(value[2], value[3])};
    if (!takes_part) packed = {0, 0};
    __stcs(reinterpret_cast<uint2*>(to + first), packed);
  }
}

__global__ void __launch_bounds__(kThreads)
    KeptGradientKernel(KeptBlock kept, PassBlock block,
                       const int64_t* __restrict__ targets, HeadMerged merged) {
  constexpr int kLoads = HeadKept::kMostRows / (kThreads * kCodes);
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int count = static_cast<int>(block.rows.count);
  uint16_t* const row = kept.codes + at * HeadKept::Stride(block.rows.count);
  uint4 loaded[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int first = (k * kThreads + static_cast<int>(threadIdx.x)) * kCodes;
    if (first < count) {
      loaded[k] = __ldcs(reinterpret_cast<const uint4*>(row + first));
    }
  }
  const TokenScale scale(merged, token);
  const bool takes_part = scale.TakesPart();
  const float of_block = scale.OfBlock(kept.largest[token]);
  const int64_t target = targets[token] - block.rows.first;
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int first = (k * kThreads + static_cast<int>(threadIdx.x)) * kCodes;
    if (first >= count) break;
    uint4 packed = loaded[k];
    auto* const pairs = reinterpret_cast<uint32_t*>(&packed);
#pragma unroll
    for (int i = 0; i < kCodes / 2; ++i) {
      pairs[i] = NarrowPair(Decode<false>(pairs[i]) * of_block,
                            Decode<true>(pairs[i]) * of_block);
    }
    if (IsAmong(target, first, kCodes)) {
      const uint32_t narrow =
          NarrowPair(scale.Target(kept.target_logits[token]), 0.0F);
#pragma unroll
      for (int i = 0; i < kCodes / 2; ++i) {
        if (first + 2 * i == target) {
          pairs[i] = __byte_perm(pairs[i], narrow, 0x3254);
        } else if (first + 2 * i + 1 == target) {
          pairs[i] = __byte_perm(pairs[i], narrow, 0x5410);
        }
      }
    }
    if (!takes_part) packed = {0, 0, 0, 0};
    __stcs(reinterpret_cast<uint4*>(row + first), packed);
  }
}

// A block of threads a token.
__global__ void __launch_bounds__(kThreads)
    MaskRowsKernel(const uint16_t* __restrict__ from, int64_t first_token,
                   int64_t dim, HeadMerged merged, uint16_t* __restrict__ to) {
  const int64_t at = blockIdx.x;
  const bool takes_part = TokenScale(merged, first_token + at).TakesPart();
  for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
    to[at * dim + j] = takes_part ? from[at * dim + j] : uint16_t{0};
  }
}

unsigned BlocksOf(const BlockRange& tokens) {
  return static_cast<unsigned>(tokens.count);
}

// Calls `launch` with the fewest loads, as a constant, that hold a token's
// logits in the threads' registers.
template <typename Launch>
void WithLoads(int64_t rows, Launch launch) {
  constexpr int kFew = kMostLoads * 5 / 8;
  constexpr int kMore = kMostLoads * 6 / 8;
  const int64_t of_load = int64_t{kThreads} * kLogits;
  if (rows <= kFew * of_load) {
    launch(std::integral_constant<int, kFew>());
  } else if (rows <= kMore * of_load) {
    launch(std::integral_constant<int, kMore>());
  } else {
    launch(std::integral_constant<int, kMostLoads>());
  }
}

}  // namespace

cudaError_t LaunchPassStatistics(const float* logits, const PassBlock& block,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadStatistics& statistics,
                                 const KeptBlock& kept, cudaStream_t stream) {
  WithLoads(block.rows.count, [&](auto loads) {
    const auto kernel = kept.codes == nullptr ? StatisticsKernel<loads, false>
                                              : StatisticsKernel<loads, true>;
    kernel<<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
        logits, block, slice.class_weights, inputs.targets, statistics, kept);
  });
  return cudaGetLastError();
}

cudaError_t LaunchPassGradient(const float* logits, const PassBlock& block,
                               const HeadInputs& inputs,
                               const HeadMerged& merged, uint16_t* gradient,
                               cudaStream_t stream) {
  WithLoads(block.rows.count, [&](auto loads) {
    GradientKernel<loads><<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
        logits, block, inputs.targets, merged, gradient);
  });
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
