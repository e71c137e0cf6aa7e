#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/dense_statistics.h"
#include "kernels/cuda/histogram.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/square_sum.cuh"
#include "kernels/element.h"

namespace rowhouse::kernels::cuda {
namespace {

// A warp's sum of the squares of a row (arithmetic.h), in all lanes.
template <bool kVector, typename T>
__device__ float SumOfSquaresAt(const T* row, int64_t dim, int lane) {
  float partial[kLaneColumns] = {};
  for (int64_t column = lane * kLaneColumns; column < dim;
       column += kGroupColumns) {
    const Columns<T> columns = LoadColumns<kVector>(row, column, dim);
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      const float x = Widen(columns.x[c]);
      partial[c] = partial[c] + x * x;
    }
  }
  return FoldPartials(partial, lane);
}

// A warp takes a row at a time; each is read once.
template <typename Main, bool kVector>
__global__ void __launch_bounds__(kThreads)
    DenseStatisticsKernel(DenseTable table, GradientStatistics* statistics) {
  __shared__ Histogram histogram;
  histogram.Clear();
  const int lane = threadIdx.x % kWarpSize;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  const auto* const main_grad = static_cast<const Main*>(table.main_grad);
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
       i < table.row_count; i += stride) {
    const float squares =
        SumOfSquaresAt<kVector>(main_grad + i * table.dim, table.dim, lane);
    if (lane > 0) continue;
    histogram.AddRow(squares);
    if (table.bias_grad == nullptr) continue;
    const float g = table.bias_grad[i];
    histogram.AddRow(g * g);
  }
  histogram.AddTo(*statistics);
}

}  // namespace

cudaError_t LaunchDenseStatistics(const DenseTable& table,
                                  GradientStatistics* statistics,
                                  cudaStream_t stream) {
  WithDenseElement(table.main_grad_dtype, [&]<typename Main>() {
    const auto kernel = IsVectorRow(table.main_grad, table.dim)
                            ? DenseStatisticsKernel<Main, true>
                            : DenseStatisticsKernel<Main, false>;
    kernel<<<FewBlocksFor(table.row_count, kWarps), kThreads, 0, stream>>>(
        table, statistics);
  });
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
