#ifndef ROWHOUSE_KERNELS_CUDA_DENSE_DIGEST_H_
#define ROWHOUSE_KERNELS_CUDA_DENSE_DIGEST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dense_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::DenseDigest`; adds to `sum` in device memory.
cudaError_t LaunchDenseDigest(const DenseTable& table, uint64_t* sum,
                              cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_DENSE_DIGEST_H_
