#ifndef ROWHOUSE_KERNELS_CUDA_DENSE_STATISTICS_H_
#define ROWHOUSE_KERNELS_CUDA_DENSE_STATISTICS_H_

#include <cuda_runtime_api.h>

#include "kernels/dense_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::DenseStatistics`; `statistics` is device memory.
cudaError_t LaunchDenseStatistics(const DenseTable& table,
                                  GradientStatistics* statistics,
                                  cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_DENSE_STATISTICS_H_
