#ifndef ROWHOUSE_KERNELS_CUDA_HEAD_BLOCK_H_
#define ROWHOUSE_KERNELS_CUDA_HEAD_BLOCK_H_

/// The passes between the GEMMs of a head call, over one block of tokens and
/// one block of rows. All pointers are device memory.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Rows of elements, row `i` beginning at element `i * stride`.
struct RowBlock {
  void* data = nullptr;
  DType dtype = DType::kFp32;
  int64_t stride = 0;
};

/// `to[to_rows[i], :] = from[from_rows[i], :]` for `i < row_count`, rounded to
/// the type of `to`; row `i` where a list is null.
cudaError_t LaunchCopyRows(const RowBlock& from, const int64_t* from_rows,
                           const RowBlock& to, const int64_t* to_rows,
                           int64_t row_count, int64_t dim, cudaStream_t stream);

/// One block of logits without their bias, [token_count, row_count] fp32.
struct LogitBlock {
  const float* logits = nullptr;
  BlockRange tokens;  ///< Of the call's tokens.
  BlockRange rows;    ///< Of the slice.
};

/// Merges the logits of a block into the statistics of its tokens; the block
/// that begins at row 0 starts them.
cudaError_t LaunchMergeStatistics(const LogitBlock& block,
                                  const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadStatistics& statistics,
                                  cudaStream_t stream);

/// Writes the logit gradient of a block (`p` of `Backend::HeadHiddenGradient`),
/// rounded to the type of `p`. Position `i` of the call's tokens is token
/// `tokens[i]`. Writes the column sums of `p` before its rounding where
/// `column_sums` is not null: tokens `w, w + 16, ...` in order for each `w <
/// 16`, then these sums in order, all from +0.
cudaError_t LaunchFormLogitGradient(const LogitBlock& block,
                                    const HeadSlice& slice,
                                    const HeadInputs& inputs,
                                    const HeadMerged& merged,
                                    const int64_t* tokens, const RowBlock& p,
                                    float* column_sums, cudaStream_t stream);

/// Adds the column sums of all token blocks, in order from +0, to `bias_grad`,
/// [row_count]; those of block `b` begin at `column_sums + b * stride`.
cudaError_t LaunchAddBiasGradient(const float* column_sums, int64_t block_count,
                                  int64_t stride, int64_t row_count,
                                  float* bias_grad, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_HEAD_BLOCK_H_
