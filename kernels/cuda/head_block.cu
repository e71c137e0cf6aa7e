#include "kernels/arithmetic.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/head_fold.cuh"
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

// What the rows of a slice have of their own; null, or 0, where it has none.
struct RowTerms {
  const float* bias;
  const float* class_weights;
  float softcap;

  static RowTerms Of(const HeadSlice& slice) {
    return {slice.bias, slice.class_weights, slice.softcap};
  }
};

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
  const TokenStart start(block.rows, token, targets[token] - block.rows.first,
                         logit, statistics);
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
  MergeToken(block.rows, token, start, pair, terms.class_weights, logit,
             statistics);
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
