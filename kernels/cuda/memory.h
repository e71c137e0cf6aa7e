#ifndef ROWHOUSE_KERNELS_CUDA_MEMORY_H_
#define ROWHOUSE_KERNELS_CUDA_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"

namespace rowhouse::kernels::cuda {

/// Memory of the current device, aligned to 256 bytes, not initialized. Freeing
/// it waits for the device's work.
///
/// Errors:
///   kResourceExhausted  there is too little memory; names the bytes asked for,
///                       free and present.
absl::StatusOr<Buffer> AllocateMemory(int64_t size_bytes);

/// Memory of the current device. Errors: kInternal.
absl::StatusOr<MemoryState> DeviceMemory();

/// Page-locked host memory, which the device copies to and from by itself.
///
/// Errors: as above.
absl::StatusOr<Buffer> AllocatePinned(int64_t size_bytes);

/// Whether `data` is memory of a device, not of the host.
bool IsDeviceMemory(const void* data);

/// See `Backend::IsDeviceMemory`.
absl::StatusOr<bool> IsMemoryOf(int device, const void* data,
                                int64_t size_bytes);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_MEMORY_H_
