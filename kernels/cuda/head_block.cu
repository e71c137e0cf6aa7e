#include "kernels/arithmetic.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"
#include "kernels/exp.h"
#include "kernels/tanh.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kStripes = 16;  // Of tokens, in a block of logit gradients.

// A block a row.
template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    CopyRowsKernel(const From* __restrict__ from, int64_t from_stride,
                   const int64_t* __restrict__ from_rows, To* __restrict__ to,
                   int64_t to_stride, const int64_t* __restrict__ to_rows,
                   int64_t dim) {
  const int64_t i = blockIdx.x;
  from += (from_rows == nullptr ? i : from_rows[i]) * from_stride;
  to += (to_rows == nullptr ? i : to_rows[i]) * to_stride;
  for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
    to[j] = Narrow<To>(Widen(from[j]));
  }
}

// Folds the values of a block's threads, on every thread: those of a warp by
// halves, then the warps' in order.
template <typename T, typename Combine>
__device__ T FoldBlock(T value, Combine combine) {
  __shared__ T of_warp[kWarps];
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  __syncthreads();  // The last call's values have been read.
  if (threadIdx.x % kWarpSize == 0) of_warp[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = of_warp[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) value = combine(value, of_warp[w]);
  return value;
}

// What the rows of a slice have of their own; null, or 0, where it has none.
struct RowTerms {
  const float* bias;
  const float* class_weights;
  float softcap;

  static RowTerms Of(const HeadSlice& slice) {
    return {slice.bias, slice.class_weights, slice.softcap};
  }
};

// The fold's sums of what is asked beside maximum and sum, on every thread of a
// token's block. `before` is the maximum of the rows before.
template <typename Logit>
__device__ void MergeAskedFor(const BlockRange& rows, int64_t token,
                              const float* class_weights, float largest,
                              float before, Logit logit,
                              const HeadStatistics& statistics) {
  if (statistics.weighted_logit_sums != nullptr) {
    float sum = 0.0F;
    for (int64_t j = threadIdx.x; j < rows.count; j += kThreads) {
      const float weight =
          class_weights == nullptr ? 1.0F : class_weights[rows.first + j];
      sum = sum + (weight == 0.0F ? 0.0F : weight * logit(j));
    }
    sum = FoldBlock(sum, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) {
      const float start =
          rows.first == 0 ? 0.0F : statistics.weighted_logit_sums[token];
      statistics.weighted_logit_sums[token] = start + sum;
    }
  }
  if (statistics.predicted == nullptr) return;
  int64_t first = rows.count;
  for (int64_t j = threadIdx.x; j < rows.count; j += kThreads) {
    if (logit(j) == largest && j < first) first = j;
  }
  first = FoldBlock(first, [](int64_t a, int64_t b) { return a < b ? a : b; });
  if (threadIdx.x != 0) return;
  const int64_t found = first < rows.count ? rows.first + first : -1;
  int64_t& predicted = statistics.predicted[token];
  if (rows.first == 0) {
    predicted = found;
  } else if (found >= 0 && (predicted < 0 || largest > before)) {
    predicted = found;
  }
}

// A block a token.
__global__ void __launch_bounds__(kThreads)
    MergeStatisticsKernel(LogitBlock block, RowTerms terms,
                          const int64_t* __restrict__ targets,
                          HeadStatistics statistics) {
  const int64_t token = block.tokens.first + blockIdx.x;
  const float* row = block.logits + blockIdx.x * block.rows.count;
  const auto logit = [&](int64_t j) {
    const float x = terms.bias == nullptr
                        ? row[j]
                        : row[j] + terms.bias[block.rows.first + j];
    return terms.softcap == 0.0F ? x : terms.softcap * Tanh(x / terms.softcap);
  };
  HeadPair pair;
  for (int64_t j = threadIdx.x; j < block.rows.count; j += kThreads) {
    const float x = logit(j);
    pair.max = x > pair.max ? x : pair.max;
  }
  pair.max =
      FoldBlock(pair.max, [](float a, float b) { return a > b ? a : b; });
  const float shift = pair.Shift();
  for (int64_t j = threadIdx.x; j < block.rows.count; j += kThreads) {
    pair.sum = pair.sum + Exp(logit(j) - shift);
  }
  pair.sum = FoldBlock(pair.sum, [](float a, float b) { return a + b; });
  // Thread 0 alone reads and writes the token's statistics.
  const float before = threadIdx.x == 0 && block.rows.first > 0
                           ? statistics.max_logits[token]
                           : pair.max;
  MergeAskedFor(block.rows, token, terms.class_weights, pair.max, before, logit,
                statistics);
  if (threadIdx.x != 0) return;
  const int64_t target = targets[token] - block.rows.first;
  if (target >= 0 && target < block.rows.count) {
    statistics.target_logits[token] = logit(target);
  }
  if (block.rows.first > 0) {
    pair = HeadPair{before, statistics.exp_sums[token]}.MergedWith(pair);
  }
  statistics.max_logits[token] = pair.max;
  statistics.exp_sums[token] = pair.sum;
}

// A warp's width of columns and all tokens a block: stripe w takes tokens w,
// w + kStripes, ...
template <typename Compute>
__global__ void __launch_bounds__(kWarpSize* kStripes)
    LogitGradientKernel(LogitBlock block, RowTerms terms,
                        const int64_t* __restrict__ targets, HeadMerged merged,
                        const int64_t* __restrict__ tokens,
                        Compute* __restrict__ p, int64_t p_stride,
                        float* __restrict__ column_sums) {
  __shared__ float sums[kStripes][kWarpSize];
  const int lane = static_cast<int>(threadIdx.x);
  const int stripe = static_cast<int>(threadIdx.y);
  const int64_t j = int64_t{blockIdx.x} * kWarpSize + lane;
  const bool active = j < block.rows.count;
  const float my_bias =
      active && terms.bias != nullptr ? terms.bias[block.rows.first + j] : 0.0F;
  const float my_weight = active && terms.class_weights != nullptr
                              ? terms.class_weights[block.rows.first + j]
                              : 1.0F;
  float sum = 0.0F;
#pragma unroll 4
  for (int64_t i = stripe; active && i < block.tokens.count; i += kStripes) {
    const int64_t token = tokens[block.tokens.first + i];
    const float logit = block.logits[i * block.rows.count + j];
    float x = terms.bias == nullptr ? logit : logit + my_bias;
    float tanh = 0.0F;
    if (terms.softcap != 0.0F) {
      tanh = Tanh(x / terms.softcap);
      x = terms.softcap * tanh;
    }
    float value = Exp(x - merged.max_logits[token]) *
                  (merged.probability[token] / merged.exp_sums[token]);
    if (merged.smoothing != nullptr) {
      value = value - merged.smoothing[token] * my_weight;
    }
    if (targets[token] - block.rows.first == j) {
      value = value - merged.target[token];
    }
    if (terms.softcap != 0.0F) value = value * (1.0F - tanh * tanh);
    p[i * p_stride + j] = Narrow<Compute>(value);
    sum = sum + value;
  }
  if (column_sums == nullptr) return;
  sums[stripe][lane] = sum;
  __syncthreads();
  if (stripe > 0 || !active) return;
  float total = 0.0F;
#pragma unroll
  for (int w = 0; w < kStripes; ++w) total = total + sums[w][lane];
  column_sums[j] = total;
}

__global__ void __launch_bounds__(kThreads)
    AddBiasGradientKernel(const float* __restrict__ column_sums,
                          int64_t block_count, int64_t stride,
                          int64_t row_count, float* __restrict__ bias_grad) {
  const int64_t j = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j >= row_count) return;
  float sum = 0.0F;
  for (int64_t b = 0; b < block_count; ++b) {
    sum = sum + column_sums[b * stride + j];
  }
  bias_grad[j] = Canonical(bias_grad[j] + sum);
}

}  // namespace

cudaError_t LaunchCopyRows(const RowBlock& from, const int64_t* from_rows,
                           const RowBlock& to, const int64_t* to_rows,
                           int64_t row_count, int64_t dim,
                           cudaStream_t stream) {
  if (row_count == 0 || dim == 0) return cudaSuccess;
  WithDenseElement(from.dtype, [&]<typename From>() {
    WithDenseElement(to.dtype, [&]<typename To>() {
      CopyRowsKernel<<<static_cast<unsigned>(row_count), kThreads, 0, stream>>>(
          static_cast<const From*>(from.data), from.stride, from_rows,
          static_cast<To*>(to.data), to.stride, to_rows, dim);
    });
  });
  return cudaGetLastError();
}

cudaError_t LaunchMergeStatistics(const LogitBlock& block,
                                  const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadStatistics& statistics,
                                  cudaStream_t stream) {
  MergeStatisticsKernel<<<static_cast<unsigned>(block.tokens.count), kThreads,
                          0, stream>>>(block, RowTerms::Of(slice),
                                       inputs.targets, statistics);
  return cudaGetLastError();
}

cudaError_t LaunchFormLogitGradient(const LogitBlock& block,
                                    const HeadSlice& slice,
                                    const HeadInputs& inputs,
                                    const HeadMerged& merged,
                                    const int64_t* tokens, const RowBlock& p,
                                    float* column_sums, cudaStream_t stream) {
  WithDenseElement(p.dtype, [&]<typename Compute>() {
    LogitGradientKernel<<<BlocksFor(block.rows.count, kWarpSize),
                          dim3(kWarpSize, kStripes), 0, stream>>>(
        block, RowTerms::Of(slice), inputs.targets, merged, tokens,
        static_cast<Compute*>(p.data), p.stride, column_sums);
  });
  return cudaGetLastError();
}

cudaError_t LaunchAddBiasGradient(const float* column_sums, int64_t block_count,
                                  int64_t stride, int64_t row_count,
                                  float* bias_grad, cudaStream_t stream) {
  AddBiasGradientKernel<<<BlocksFor(row_count, kThreads), kThreads, 0,
                          stream>>>(column_sums, block_count, stride, row_count,
                                    bias_grad);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
