#ifndef ROWHOUSE_KERNELS_CUDA_DENSE_H_
#define ROWHOUSE_KERNELS_CUDA_DENSE_H_

/// The host's side of the operations on dense tables; the contracts are those
/// of `Backend`. Each enqueues kernels on its stream and returns.

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/stream.h"

namespace rowhouse::kernels::cuda {

absl::Status InitializeDense(Stream& stream, const DenseTable& table,
                             const Initializer& initializer, bool fresh);

absl::Status WriteDenseRows(Stream& stream, const DenseTable& table,
                            int64_t first_slot, int64_t row_count,
                            const void* rows);

absl::Status ClearMainGrad(Stream& stream, const DenseTable& table);

absl::Status AccumulateEmbeddingGradient(Stream& stream,
                                         const MainGrad& main_grad,
                                         const EmbeddingGradient& gradient);

absl::Status ApplyAdamW(Stream& stream, const DenseTable& table,
                        const AdamWFactors& factors, NonFinitePolicy policy,
                        EventReport& report);

absl::Status DenseStatistics(Stream& stream, const DenseTable& table,
                             GradientStatistics& statistics);

absl::Status DenseDigest(Stream& stream, const DenseTable& table,
                         uint64_t& sum);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_DENSE_H_
