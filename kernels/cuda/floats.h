#ifndef ROWHOUSE_KERNELS_CUDA_FLOATS_H_
#define ROWHOUSE_KERNELS_CUDA_FLOATS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::AddFloats`. Reads 8 bytes an element, writes 4.
cudaError_t LaunchAddFloats(const float* from, float* to, int64_t count,
                            cudaStream_t stream);

/// Enqueues `Backend::NarrowFloats`.
cudaError_t LaunchNarrowFloats(const float* from, int64_t count, DType dtype,
                               void* to, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_FLOATS_H_
