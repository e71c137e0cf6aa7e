#include "kernels/cuda/floats.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"

namespace rowhouse::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    AddFloatsKernel(const float* __restrict__ from, float* __restrict__ to,
                    int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += stride) {
    to[i] = __fadd_rn(to[i], from[i]);
  }
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    NarrowFloatsKernel(const float* __restrict__ from, int64_t count,
                       Element* __restrict__ to) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += stride) {
    to[i] = Narrow<Element>(from[i]);
  }
}

}  // namespace

cudaError_t LaunchAddFloats(const float* from, float* to, int64_t count,
                            cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  AddFloatsKernel<<<BlocksFor(count, 4 * kThreads), kThreads, 0, stream>>>(
      from, to, count);
  return cudaGetLastError();
}

cudaError_t LaunchNarrowFloats(const float* from, int64_t count, DType dtype,
                               void* to, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const unsigned blocks = BlocksFor(count, 4 * kThreads);
  switch (dtype) {
    case DType::kBf16:
      NarrowFloatsKernel<<<blocks, kThreads, 0, stream>>>(
          from, count, static_cast<uint16_t*>(to));
      break;
    case DType::kFp16:
      NarrowFloatsKernel<<<blocks, kThreads, 0, stream>>>(
          from, count, static_cast<Fp16*>(to));
      break;
    case DType::kFp32:  // All bits, of a NaN too.
      return cudaMemcpyAsync(to, from,
                             static_cast<size_t>(count) * sizeof(float),
                             cudaMemcpyDeviceToDevice, stream);
  }
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
