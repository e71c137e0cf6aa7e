#ifndef ROWHOUSE_KERNELS_CUDA_NGRAM_H_
#define ROWHOUSE_KERNELS_CUDA_NGRAM_H_

/// The host's side of the n-gram operations; the contracts are those of
/// `Backend`. Each enqueues kernels on its stream and returns.

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/dtype.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cuda {

absl::Status NgramRowIds(Stream& stream, std::span<const int32_t> tokens,
                         int64_t table_row_count, std::span<int64_t> row_ids);

absl::Status NgramWantList(Stream& stream,
                           std::span<const std::span<const int32_t>> steps,
                           int64_t table_row_count, std::span<int64_t> want,
                           int64_t& want_count);

absl::Status FindSlots(Stream& stream, std::span<const int64_t> want,
                       std::span<const int64_t> row_ids,
                       std::span<int64_t> slots, int64_t& first_missing);

absl::Status NgramEmbedForward(Stream& stream, const void* cache, DType dtype,
                               int64_t dim, std::span<const int32_t> tokens,
                               std::span<const int64_t> slots,
                               const SignPool& pool, void* out);

absl::Status NgramEmbedBackward(Stream& stream, const void* gradient,
                                DType dtype, int64_t dim,
                                std::span<const int32_t> tokens,
                                const SignPool& pool, void* row_gradient);

absl::Status SumNgramGradients(Stream& stream, std::span<const NgramStep> steps,
                               DType gradient_dtype, int64_t dim,
                               const SignPool& pool, int64_t slot_count,
                               DType wire_dtype, void* out);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NGRAM_H_
