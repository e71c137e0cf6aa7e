#ifndef ROWHOUSE_KERNELS_CPU_EMBED_H_
#define ROWHOUSE_KERNELS_CPU_EMBED_H_

#include <cstdint>
#include <span>

#include "kernels/cpu/executor.h"
#include "kernels/dtype.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::NgramRowIds`.
void NgramRowIds(Executor& executor, std::span<const int32_t> tokens,
                 int64_t table_row_count, std::span<int64_t> row_ids);

/// See `Backend::FindSlots`; returns the first missing.
int64_t FindSlots(Executor& executor, std::span<const int64_t> want,
                  std::span<const int64_t> row_ids, std::span<int64_t> slots);

/// See `Backend::NgramEmbedForward`.
void NgramEmbedForward(Executor& executor, const void* cache, DType dtype,
                       int64_t dim, std::span<const int32_t> tokens,
                       std::span<const int64_t> slots, const SignPool& pool,
                       void* out);

/// See `Backend::NgramEmbedBackward`.
void NgramEmbedBackward(Executor& executor, const void* gradient, DType dtype,
                        int64_t dim, std::span<const int32_t> tokens,
                        const SignPool& pool, void* row_gradient);

/// See `Backend::SumNgramGradients`.
void SumNgramGradients(Executor& executor, std::span<const NgramStep> steps,
                       DType gradient_dtype, int64_t dim, const SignPool& pool,
                       int64_t slot_count, DType wire_dtype, void* out);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_EMBED_H_
