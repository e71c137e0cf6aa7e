#ifndef ROWHOUSE_KERNELS_CUDA_STATUS_H_
#define ROWHOUSE_KERNELS_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace rowhouse::kernels::cuda {

/// OK, or kInternal: what was being done and CUDA's own words. After a fault of
/// the device every later call fails the same way.
absl::Status ToStatus(cudaError_t error, const char* doing);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_STATUS_H_
