#ifndef ROWHOUSE_KERNELS_CUDA_SHARED_MEMORY_H_
#define ROWHOUSE_KERNELS_CUDA_SHARED_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/shared_memory.h"

namespace rowhouse::kernels::cuda {

/// Bytes to allocate for so many that are to be shared: whole pages of 2 MiB,
/// for CUDA shares those, with whatever else lies there.
int64_t SharedBytes(int64_t size_bytes);

/// See `Backend::Share`; `offset_bytes` is where the buffer lies in its
/// allocation.
absl::StatusOr<SharedMemory> NameMemory(const Buffer& buffer,
                                        int64_t offset_bytes);

/// See `Backend::Map`; for the current device, which is `device`: memory of
/// another one is read over the link between them.
absl::StatusOr<Buffer> MapMemory(const SharedMemory& memory, int device);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SHARED_MEMORY_H_
