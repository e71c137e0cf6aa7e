#include <limits>
#include <type_traits>

#include "kernels/cuda/head_fold.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_code.cuh"
#include "kernels/cuda/logit_pass.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kLogits = 4;  // Of one load.
constexpr int kCodes = 8;   // Of one load.
constexpr int kMostLoads = HeadKept::kMostRows / (kThreads * kLogits);

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
      if (j + kLogits <= count) {
        x = __ldcs(reinterpret_cast<const float4*>(row + j));
      } else if (j < count) {  // The padding behind it holds nothing.
        x.x = row[j];
        if (j + 1 < count) x.y = row[j + 1];
        if (j + 2 < count) x.z = row[j + 2];
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

__global__ void __launch_bounds__(kThreads)
    ScalesKernel(HeadMerged merged, int64_t token_count, TokenScale* scales) {
  const int64_t token = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (token >= token_count) return;
  const float probability = merged.probability[token];
  const float target = merged.target[token];
  const bool takes_part = probability != 0.0F || target != 0.0F;
  scales[token] = {probability / merged.exp_sums[token],
                   merged.max_logits[token], target, takes_part ? 1.0F : 0.0F};
}

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

template <int kLoads>
__global__ void __launch_bounds__(kThreads)
    GradientKernel(const float* __restrict__ logits, PassBlock block,
                   const int64_t* __restrict__ targets,
                   const TokenScale* __restrict__ scales,
                   uint16_t* __restrict__ gradient) {
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int64_t stride = HeadKept::Stride(block.rows.count);
  const int count = static_cast<int>(block.rows.count);
  uint16_t* const to = gradient + at * stride;
  const TokenScale scale = scales[token];
  const int64_t target = targets[token] - block.rows.first;
  const TokenLogits<kLoads> mine(logits + at * stride, count);
  const bool takes_part = scale.takes_part != 0.0F;
  const float of_block = OfLargest(scale, mine.largest());
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int first = TokenLogits<kLoads>::First(k);
    if (first >= count) continue;
    float value[kLogits];
#pragma unroll
    for (int c = 0; c < kLogits; ++c) {
      value[c] = Rounded(mine.Octaves(k, c)) * of_block;
    }
    if (IsAmong(target, first, kLogits)) {
#pragma unroll
      for (int c = 0; c < kLogits; ++c) {
        if (first + c == target) value[c] = AtTarget(scale, mine.at(k, c));
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
                       const int64_t* __restrict__ targets,
                       const TokenScale* __restrict__ scales,
                       int64_t token_count) {
  constexpr int kLoads = 4;  // Under way at a time.
  const int64_t at = blockIdx.x;
  const int64_t token = block.tokens.first + at;
  const int count = static_cast<int>(block.rows.count);
  const auto rows_of_largest = static_cast<int>(kept.rows_of_largest);
  uint16_t* const row = kept.codes + at * HeadKept::Stride(block.rows.count);
  const TokenScale scale = scales[token];
  const bool takes_part = scale.takes_part != 0.0F;
  const int64_t target = targets[token] - block.rows.first;
  constexpr int kStep = kThreads * kCodes;
  for (int begin = static_cast<int>(threadIdx.x) * kCodes; begin < count;
       begin += kLoads * kStep) {
    uint4 loaded[kLoads];
    float largest[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int first = begin + k * kStep;
      if (first >= count) break;
      loaded[k] = __ldcs(reinterpret_cast<const uint4*>(row + first));
      largest[k] = kept.largest[first / rows_of_largest * token_count + token];
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const int first = begin + k * kStep;
      if (first >= count) break;
      const float of_block = OfLargest(scale, largest[k]);
      uint4 packed = loaded[k];
      auto* const pairs = reinterpret_cast<uint32_t*>(&packed);
#pragma unroll
      for (int i = 0; i < kCodes / 2; ++i) {
        pairs[i] = NarrowPair(Decode<false>(pairs[i]) * of_block,
                              Decode<true>(pairs[i]) * of_block);
      }
      if (IsAmong(target, first, kCodes)) {
        const uint32_t narrow =
            NarrowPair(AtTarget(scale, kept.target_logits[token]), 0.0F);
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
}

// A block of threads a token.
__global__ void __launch_bounds__(kThreads)
    MaskRowsKernel(const uint16_t* __restrict__ from, int64_t first_token,
                   int64_t dim, const TokenScale* __restrict__ scales,
                   uint16_t* __restrict__ to) {
  const int64_t at = blockIdx.x;
  const bool takes_part = scales[first_token + at].takes_part != 0.0F;
  for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
    to[at * dim + j] = takes_part ? from[at * dim + j] : uint16_t{0};
  }
}

// A block of threads a token.
__global__ void __launch_bounds__(kThreads)
    ClearLeftOutKernel(float* __restrict__ rows, int64_t dim,
                       const TokenScale* __restrict__ scales) {
  const int64_t token = blockIdx.x;
  if (scales[token].takes_part != 0.0F) return;
  for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
    rows[token * dim + j] = 0.0F;
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

cudaError_t LaunchTokenScales(const HeadMerged& merged, int64_t token_count,
                              TokenScale* scales, cudaStream_t stream) {
  ScalesKernel<<<BlocksFor(token_count, kThreads), kThreads, 0, stream>>>(
      merged, token_count, scales);
  return cudaGetLastError();
}

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
                               const TokenScale* scales, uint16_t* gradient,
                               cudaStream_t stream) {
  WithLoads(block.rows.count, [&](auto loads) {
    GradientKernel<loads><<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
        logits, block, inputs.targets, scales, gradient);
  });
  return cudaGetLastError();
}

cudaError_t LaunchPassKeptGradient(const KeptBlock& kept,
                                   const PassBlock& block,
                                   const HeadInputs& inputs,
                                   const TokenScale* scales,
                                   cudaStream_t stream) {
  KeptGradientKernel<<<BlocksOf(block.tokens), kThreads, 0, stream>>>(
      kept, block, inputs.targets, scales, inputs.token_count);
  return cudaGetLastError();
}

cudaError_t LaunchMaskRows(const uint16_t* from, const BlockRange& tokens,
                           int64_t dim, const TokenScale* scales, uint16_t* to,
                           cudaStream_t stream) {
  MaskRowsKernel<<<BlocksOf(tokens), kThreads, 0, stream>>>(from, tokens.first,
                                                            dim, scales, to);
  return cudaGetLastError();
}

cudaError_t LaunchClearLeftOut(float* rows, int64_t token_count, int64_t dim,
                               const TokenScale* scales, cudaStream_t stream) {
  ClearLeftOutKernel<<<BlocksOf({0, token_count}), kThreads, 0, stream>>>(
      rows, dim, scales);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
