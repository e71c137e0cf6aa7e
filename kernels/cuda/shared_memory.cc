#include "kernels/cuda/shared_memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int64_t kPageBytes = int64_t{2} << 20;

// An allocation of another process, open in this one.
struct Opened {
  void* first;
  int device;
};

void Close(void* owner, void* /*data*/, int64_t /*size_bytes*/) {
  const std::unique_ptr<Opened> opened(static_cast<Opened*>(owner));
  // A device at fault has nothing to close.
  if (cudaSetDevice(opened->device) != cudaSuccess) return;
  (void)cudaIpcCloseMemHandle(opened->first);
}

}  // namespace

int64_t SharedBytes(int64_t size_bytes) {
  return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

absl::StatusOr<SharedMemory> NameMemory(const Buffer& buffer,
                                        int64_t offset_bytes) {
  cudaIpcMemHandle_t handle;
  absl::Status named = ToStatus(
      cudaIpcGetMemHandle(&handle, buffer.as<std::byte>() - offset_bytes),
      "naming memory to other processes");
  if (!named.ok()) return named;
  return SharedMemory{
      std::string(reinterpret_cast<const char*>(&handle), sizeof(handle)),
      offset_bytes, buffer.size_bytes()};
}

absl::StatusOr<Buffer> MapMemory(const SharedMemory& memory, int device) {
  cudaIpcMemHandle_t handle;
  if (memory.handle.size() != sizeof(handle) || memory.offset_bytes < 0 ||
      memory.size_bytes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a handle of ", memory.handle.size(), " bytes for ", memory.size_bytes,
        " bytes from byte ", memory.offset_bytes, " on, wanted ",
        sizeof(handle), " for 1 or more from 0 or later"));
  }
  std::memcpy(&handle, memory.handle.data(), sizeof(handle));
  void* first = nullptr;
  const cudaError_t error =
      cudaIpcOpenMemHandle(&first, handle, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return absl::NotFoundError(
        absl::StrCat("the GPU memory of another process cannot be mapped: ",
                     cudaGetErrorString(error)));
  }
  return Buffer(static_cast<std::byte*>(first) + memory.offset_bytes,
                memory.size_bytes, &Close, new Opened{first, device});
}

}  // namespace rowhouse::kernels::cuda
