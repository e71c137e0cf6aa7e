#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

void Free(void* data, int64_t) { (void)cudaFree(data); }
void FreePinned(void* data, int64_t) { (void)cudaFreeHost(data); }

// Not enough memory is no fault of the device: forgets it.
absl::Status OutOfMemory(int64_t size_bytes, const char* kind) {
  (void)cudaGetLastError();
  size_t free = 0;
  size_t total = 0;
  (void)cudaMemGetInfo(&free, &total);
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", size_bytes, " bytes of ", kind,
                   " memory; ", free, " of the GPU's ", total, " are free"));
}

}  // namespace

absl::StatusOr<Buffer> AllocateMemory(int64_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  if (size_bytes < 0) return OutOfMemory(size_bytes, "GPU");
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<size_t>(size_bytes));
  if (error == cudaErrorMemoryAllocation) {
    return OutOfMemory(size_bytes, "GPU");
  }
  if (error != cudaSuccess) return ToStatus(error, "allocating memory");
  return Buffer(data, size_bytes, &Free);
}

absl::StatusOr<Buffer> AllocatePinned(int64_t size_bytes) {
  void* data = nullptr;
  const cudaError_t error =
      cudaMallocHost(&data, static_cast<size_t>(size_bytes));
  if (error == cudaErrorMemoryAllocation) {
    return OutOfMemory(size_bytes, "page-locked host");
  }
  if (error != cudaSuccess) return ToStatus(error, "allocating host memory");
  return Buffer(data, size_bytes, &FreePinned);
}

bool IsDeviceMemory(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) return false;
  return attributes.type == cudaMemoryTypeDevice;
}

}  // namespace rowhouse::kernels::cuda
