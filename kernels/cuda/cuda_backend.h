#ifndef ROWHOUSE_KERNELS_CUDA_CUDA_BACKEND_H_
#define ROWHOUSE_KERNELS_CUDA_CUDA_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rowhouse::kernels::cuda {

/// The backend on CUDA device `device_index`, counted as `CUDA_VISIBLE_DEVICES`
/// leaves them. Each thread's calls go to one of a few streams, so that landing
/// and serving overlap.
///
/// Errors:
///   kUnimplemented  this build has no CUDA backend.
///   kNotFound       there is no such device, or no driver.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_CUDA_BACKEND_H_
