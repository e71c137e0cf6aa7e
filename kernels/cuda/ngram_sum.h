#ifndef ROWHOUSE_KERNELS_CUDA_NGRAM_SUM_H_
#define ROWHOUSE_KERNELS_CUDA_NGRAM_SUM_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/cuda/entries.h"
#include "kernels/dtype.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cuda {

/// One row gradient of a cycle: a row of the output's gradient and the signs
/// that make it one.
struct SignedRow {
  const void* row;
  int64_t sign_row;
};

/// Enqueues the listing of the row gradients of `steps`, in the order (step,
/// position), and `in_use[slot] = 1` for their slots.
cudaError_t LaunchListSignedRows(std::span<const NgramStep> steps,
                                 DType gradient_dtype, int64_t dim,
                                 int64_t sign_row_count, SignedRow* rows,
                                 uint8_t* in_use, cudaStream_t stream);

/// Enqueues `Backend::SumNgramGradients`. `rows` and `in_use` are those of
/// `steps`; `entries` are their slots, sorted, and places in `rows`. Reads a
/// gradient row an entry and writes every row of `out` once.
cudaError_t LaunchSumNgramGradients(std::span<const NgramStep> steps,
                                    DType gradient_dtype, int64_t dim,
                                    const SignPool& pool, const SignedRow* rows,
                                    const uint8_t* in_use,
                                    const Entries& entries, int64_t slot_count,
                                    DType wire_dtype, void* out,
                                    cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NGRAM_SUM_H_
