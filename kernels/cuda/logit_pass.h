#ifndef ROWHOUSE_KERNELS_CUDA_LOGIT_PASS_H_
#define ROWHOUSE_KERNELS_CUDA_LOGIT_PASS_H_

/// The passes between the GEMMs of a bf16 head without bias and softcap
/// (bf16_head.h): each reads a block of logits, or of their codes, once. All
/// pointers are device memory.
///
/// A logit's code is 16 bits: how far it lies below the largest of its token in
/// the block of rows, in steps of 2^-9 octaves, to the nearest; 65535 and
/// beyond are 0. So e^(logit - largest) is kept within 2^-10 * ln 2 = 0.00068
/// of itself, a sixth of what rounding to bf16 may lose, whatever the logit's
/// size.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Tokens `tokens` and rows `rows`; token `i` of the block begins at element `i
/// * HeadKept::Stride(rows.count)`. A block of threads holds a token's logits
/// in registers, so there are at most `HeadKept::kMostRows`.
struct PassBlock {
  BlockRange tokens;
  BlockRange rows;
};

/// What a call keeps of a block of rows: codes, or the logit gradient in their
/// place, [tokens of the block, HeadKept::Stride]; and per token of the call.
struct KeptBlock {
  uint16_t* codes = nullptr;
  /// [ceil(rows / rows_of_largest), token_count]: the largest logit of so many
  /// rows, from the first of the block on.
  float* largest = nullptr;
  int64_t rows_of_largest = 0;     ///< A multiple of 8, or all of the block's.
  float* target_logits = nullptr;  ///< [token_count]: of all blocks of rows.
};

/// What a token's logits become its gradient by, aligned to be one load.
struct alignas(16) TokenScale {
  float of_max;  ///< Of e^(logit - max): probability / exp_sum.
  float max;
  float target;
  float takes_part;  ///< 0: the gradient is 0.
};

/// Writes the scales of `merged`, [token_count].
cudaError_t LaunchTokenScales(const HeadMerged& merged, int64_t token_count,
                              TokenScale* scales, cudaStream_t stream);

/// Merges a block of logits, fp32, into the statistics of its tokens; the block
/// that begins at row 0 starts them. Keeps codes where `kept.codes` is not
/// null.
///
/// Bytes: 4 a logit read, 2 written where they are kept.
cudaError_t LaunchPassStatistics(const float* logits, const PassBlock& block,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadStatistics& statistics,
                                 const KeptBlock& kept, cudaStream_t stream);

/// The logit gradient, bf16, from fp32 logits into `gradient`, rows as those of
/// codes: `2^-(code / 512) * (e^(largest - max) * of_max)`; at the target, from
/// the logit itself, `e^(logit - max) * of_max - target`; 0 for tokens that
/// take no part. fp32, rounded once.
///
/// Bytes: 4 a logit read, 2 written.
cudaError_t LaunchPassGradient(const float* logits, const PassBlock& block,
                               const HeadInputs& inputs,
                               const TokenScale* scales, uint16_t* gradient,
                               cudaStream_t stream);

/// The same, equal bits, from the codes that it takes the place of.
///
/// Bytes: 2 a logit read, 2 written.
cudaError_t LaunchPassKeptGradient(const KeptBlock& kept,
                                   const PassBlock& block,
                                   const HeadInputs& inputs,
                                   const TokenScale* scales,
                                   cudaStream_t stream);

/// `to[i, :] = from[i, :]`, bf16, 0 for tokens that take no part; rows of
/// `dim`.
cudaError_t LaunchMaskRows(const uint16_t* from, const BlockRange& tokens,
                           int64_t dim, const TokenScale* scales, uint16_t* to,
                           cudaStream_t stream);

/// `rows[i, :] = 0`, fp32, for tokens that take no part; other rows stay.
cudaError_t LaunchClearLeftOut(float* rows, int64_t token_count, int64_t dim,
                               const TokenScale* scales, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_LOGIT_PASS_H_
