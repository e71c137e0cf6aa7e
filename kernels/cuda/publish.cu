#include "kernels/cuda/launch.h"
#include "kernels/cuda/publish.h"

namespace rowhouse::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    PublishKernel(const uint64_t* __restrict__ result, uint64_t* host,
                  int word_count) {
  for (int i = threadIdx.x; i < word_count; i += kThreads) host[i] = result[i];
}

}  // namespace

cudaError_t LaunchPublish(const void* result, void* host, int64_t size_bytes,
                          cudaStream_t stream) {
  PublishKernel<<<1, kThreads, 0, stream>>>(
      static_cast<const uint64_t*>(result), static_cast<uint64_t*>(host),
      static_cast<int>((size_bytes + 7) / 8));
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
