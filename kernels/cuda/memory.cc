#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr size_t kPageBytes = size_t{2} << 20;

// Of so many bytes all pages whole: the driver takes no less for them, but maps
// memory that ends within a page by small pages in other processes, where
// gathers then take 40 times as long.
size_t InPages(size_t size_bytes) {
  if (size_bytes < kPageBytes) return size_bytes;
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void Free(void*, void* data, int64_t) { (void)cudaFree(data); }
void FreePinned(void*, void* data, int64_t) { (void)cudaFreeHost(data); }

constexpr int kHost = -1;

// The device whose memory `data` is, or `kHost`.
int DeviceOf(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) return kHost;
  return attributes.type == cudaMemoryTypeDevice ? attributes.device : kHost;
}

// Not enough memory is no fault of the device: forgets it.
absl::Status OutOfMemory(int64_t size_bytes, const char* kind) {
  (void)cudaGetLastError();
  const absl::StatusOr<MemoryState> state = DeviceMemory();
  if (!state.ok()) return state.status();
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot allocate ", size_bytes, " bytes of ", kind, " memory; ",
      state->free_bytes, " of the GPU's ", state->total_bytes, " are free"));
}

}  // namespace

absl::StatusOr<MemoryState> DeviceMemory() {
  size_t free = 0;
  size_t total = 0;
  absl::Status read =
      ToStatus(cudaMemGetInfo(&free, &total), "asking for free memory");
  if (!read.ok()) return read;
  return MemoryState{.total_bytes = static_cast<int64_t>(total),
                     .free_bytes = static_cast<int64_t>(free)};
}

absl::StatusOr<Buffer> AllocateMemory(int64_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  if (size_bytes < 0) return OutOfMemory(size_bytes, "GPU");
  void* data = nullptr;
  const cudaError_t error =
      cudaMalloc(&data, InPages(static_cast<size_t>(size_bytes)));
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

bool IsDeviceMemory(const void* data) { return DeviceOf(data) != kHost; }

absl::StatusOr<bool> IsMemoryOf(int device, const void* data,
                                int64_t size_bytes) {
  if (size_bytes == 0) return false;
  const int first = DeviceOf(data);
  const int last = DeviceOf(static_cast<const char*>(data) + size_bytes - 1);
  if (first == kHost && last == kHost) return false;
  if (first == device && last == device) return true;
  const auto name = [](int found) {
    return found == kHost ? std::string("the host")
                          : absl::StrCat("GPU ", found);
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "a buffer of ", size_bytes, " bytes that begins in memory of ",
      name(first), " and ends in that of ", name(last), ", wanted GPU ", device,
      "'s or the host's"));
}

}  // namespace rowhouse::kernels::cuda
