#ifndef ROWHOUSE_KERNELS_CUDA_ADAMW_H_
#define ROWHOUSE_KERNELS_CUDA_ADAMW_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dense_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::ApplyAdamW`. `untouched_row_count`, in device memory,
/// grows by the rows left as they were. A row of up to 4096 columns is read
/// once; of a longer one the first are formed again once all of it is known to
/// be finite, then mostly from the cache.
cudaError_t LaunchAdamW(const DenseTable& table, const AdamWFactors& factors,
                        NonFinitePolicy policy,
                        unsigned long long* untouched_row_count,
                        cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_ADAMW_H_
