#ifndef ROWHOUSE_KERNELS_CUDA_HEAD_FOLD_CUH_
#define ROWHOUSE_KERNELS_CUDA_HEAD_FOLD_CUH_

/// What a block of kThreads threads makes of the logits of one token.

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Folds the values of a block's threads, on every thread: those of a warp by
/// halves, then the warps' in order.
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

/// The fold's sums of what is asked beside maximum and sum, on every thread of
/// a token's block. `before` is the maximum of the rows before.
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

/// What merging a token takes beside its logits, on thread 0, which would wait
/// for it at the end. `target` is relative to the first of the rows, and may
/// lie outside.
struct TokenStart {
  HeadPair before;  // Of the rows before; nothing where there are none.
  bool has_target = false;
  float target_logit = 0.0F;

  template <typename Logit>
  __device__ TokenStart(const BlockRange& rows, int64_t token, int64_t target,
                        Logit logit, const HeadStatistics& statistics) {
    if (threadIdx.x != 0) return;
    if (rows.first > 0) {
      before = {statistics.max_logits[token], statistics.exp_sums[token]};
    }
    has_target = target >= 0 && target < rows.count;
    if (has_target) target_logit = logit(target);
  }
};

/// Merges what `rows` say of `token` into its statistics, on every thread of
/// the token's block; the block of rows that begins at 0 starts them.
template <typename Logit>
__device__ void MergeToken(const BlockRange& rows, int64_t token,
                           const TokenStart& start, HeadPair pair,
                           const float* class_weights, Logit logit,
                           const HeadStatistics& statistics) {
  MergeAskedFor(rows, token, class_weights, pair.max, start.before.max, logit,
                statistics);
  if (threadIdx.x != 0) return;
  if (start.has_target) statistics.target_logits[token] = start.target_logit;
  if (rows.first > 0) pair = start.before.MergedWith(pair);
  statistics.max_logits[token] = pair.max;
  statistics.exp_sums[token] = pair.sum;
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_HEAD_FOLD_CUH_
