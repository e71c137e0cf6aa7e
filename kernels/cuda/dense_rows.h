#ifndef ROWHOUSE_KERNELS_CUDA_DENSE_ROWS_H_
#define ROWHOUSE_KERNELS_CUDA_DENSE_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dense_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues the setting of weights, and of the master where there is one, to
/// `UniformInitial`.
cudaError_t LaunchFillUniform(const DenseTable& table, uint64_t seed,
                              float bound, cudaStream_t stream);

/// Enqueues `to[i] = from[i]`, widened, for `i < count`.
cudaError_t LaunchWiden(const void* from, DType dtype, int64_t count, float* to,
                        cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_DENSE_ROWS_H_
