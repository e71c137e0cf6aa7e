#ifndef ROWHOUSE_KERNELS_CUDA_EMBEDDING_GRADIENT_H_
#define ROWHOUSE_KERNELS_CUDA_EMBEDDING_GRADIENT_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/entries.h"
#include "kernels/dense_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::AccumulateEmbeddingGradient`. `entries` are those of
/// `gradient`, by slot.
cudaError_t LaunchAccumulateEmbeddingGradient(const MainGrad& main_grad,
                                              const EmbeddingGradient& gradient,
                                              const Entries& entries,
                                              cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_EMBEDDING_GRADIENT_H_
