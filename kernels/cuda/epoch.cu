#include "kernels/cuda/epoch.h"

namespace rowhouse::kernels::cuda {
namespace {

__global__ void StoreEpochKernel(int64_t* epoch, int64_t value) {
  asm volatile("st.release.sys.global.s64 [%0], %1;"
               :
               : "l"(epoch), "l"(value)
               : "memory");
  __threadfence_system();
}

__global__ void LoadEpochKernel(const int64_t* epoch, int64_t* host) {
  __threadfence_system();
  int64_t value;
  asm volatile("ld.acquire.sys.global.s64 %0, [%1];"
               : "=l"(value)
               : "l"(epoch)
               : "memory");
  *host = value;
}

}  // namespace

cudaError_t LaunchStoreEpoch(int64_t* epoch, int64_t value,
                             cudaStream_t stream) {
  StoreEpochKernel<<<1, 1, 0, stream>>>(epoch, value);
  return cudaGetLastError();
}

cudaError_t LaunchLoadEpoch(const int64_t* epoch, int64_t* host,
                            cudaStream_t stream) {
  LoadEpochKernel<<<1, 1, 0, stream>>>(epoch, host);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
