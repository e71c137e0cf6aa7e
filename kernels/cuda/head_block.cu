#include "kernels/arithmetic.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"
#include "kernels/exp.h"

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
template <typename Combine>
__device__ float FoldBlock(float value, Combine combine) {
  __shared__ float of_warp[kWarps];
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

// A block a token.
__global__ void __launch_bounds__(kThreads)
    MergeStatisticsKernel(LogitBlock block, const float* __restrict__ bias,
                          const int64_t* __restrict__ targets,
                          HeadStatistics statistics) {
  const int64_t token = block.tokens.first + blockIdx.x;
  const float* row = block.logits + blockIdx.x * block.rows.count;
  const auto logit = [&](int64_t j) {
    return bias == nullptr ? row[j] : row[j] + bias[block.rows.first + j];
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
  if (threadIdx.x != 0) return;
  const int64_t target = targets[token] - block.rows.first;
  if (target >= 0 && target < block.rows.count) {
    statistics.target_logits[token] = logit(target);
  }
  if (block.rows.first > 0) {
    const HeadPair before = {statistics.max_logits[token],
                             statistics.exp_sums[token]};
    pair = before.MergedWith(pair);
  }
  statistics.max_logits[token] = pair.max;
  statistics.exp_sums[token] = pair.sum;
}

// A warp's width of columns and all tokens a block: stripe w takes tokens w,
// w + kStripes, ...
template <typename Compute>
__global__ void __launch_bounds__(kWarpSize* kStripes)
    LogitGradientKernel(LogitBlock block, const float* __restrict__ bias,
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
      active && bias != nullptr ? bias[block.rows.first + j] : 0.0F;
  float sum = 0.0F;
#pragma unroll 4
  for (int64_t i = stripe; active && i < block.tokens.count; i += kStripes) {
    const int64_t token = tokens[block.tokens.first + i];
    const float upstream = merged.upstream[token];
    const float logit = block.logits[i * block.rows.count + j];
    const float x = bias == nullptr ? logit : logit + my_bias;
    float value =
        Exp(x - merged.max_logits[token]) * (upstream / merged.exp_sums[token]);
    if (targets[token] - block.rows.first == j) value = value - upstream;
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
                          0, stream>>>(block, slice.bias, inputs.targets,
                                       statistics);
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
        block, slice.bias, inputs.targets, merged, tokens,
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
