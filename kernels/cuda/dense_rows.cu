#include "kernels/cuda/dense_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"
#include "kernels/hash.h"

namespace rowhouse::kernels::cuda {
namespace {

// A block a row.
template <typename Weight>
__global__ void __launch_bounds__(kThreads)
    FillUniformKernel(DenseTable table, uint64_t seed, float bound) {
  const int64_t slot = blockIdx.x;
  auto* weights = static_cast<Weight*>(table.weights) + slot * table.dim;
  for (int64_t j = threadIdx.x; j < table.dim; j += kThreads) {
    const float value =
        UniformInitial(seed, bound, table.first_row_id + slot, j);
    weights[j] = Narrow<Weight>(value);
    if (table.master != nullptr) table.master[slot * table.dim + j] = value;
  }
}

template <typename From>
__global__ void __launch_bounds__(kThreads)
    WidenKernel(const From* __restrict__ from, int64_t count,
                float* __restrict__ to) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    to[i] = Widen(from[i]);
  }
}

}  // namespace

cudaError_t LaunchFillUniform(const DenseTable& table, uint64_t seed,
                              float bound, cudaStream_t stream) {
  if (table.row_count == 0) return cudaSuccess;
  WithDenseElement(table.dtype, [&]<typename Weight>() {
    FillUniformKernel<Weight>
        <<<static_cast<unsigned>(table.row_count), kThreads, 0, stream>>>(
            table, seed, bound);
  });
  return cudaGetLastError();
}

cudaError_t LaunchWiden(const void* from, DType dtype, int64_t count, float* to,
                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  WithDenseElement(dtype, [&]<typename From>() {
    WidenKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
        static_cast<const From*>(from), count, to);
  });
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
