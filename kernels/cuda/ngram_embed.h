#ifndef ROWHOUSE_KERNELS_CUDA_NGRAM_EMBED_H_
#define ROWHOUSE_KERNELS_CUDA_NGRAM_EMBED_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/dtype.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::NgramEmbedForward`. Reads two rows a token, writes one.
cudaError_t LaunchNgramEmbedForward(const void* cache, DType dtype, int64_t dim,
                                    std::span<const int32_t> tokens,
                                    std::span<const int64_t> slots,
                                    const SignPool& pool, void* out,
                                    cudaStream_t stream);

/// Enqueues `Backend::NgramEmbedBackward`. Reads one row a token, writes two.
cudaError_t LaunchNgramEmbedBackward(const void* gradient, DType dtype,
                                     int64_t dim,
                                     std::span<const int32_t> tokens,
                                     const SignPool& pool, void* row_gradient,
                                     cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NGRAM_EMBED_H_
