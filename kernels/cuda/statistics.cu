#include "kernels/cuda/histogram.cuh"
#include "kernels/cuda/square_sum.cuh"
#include "kernels/cuda/statistics.h"

namespace rowhouse::kernels::cuda {
namespace {

template <typename Gradient, bool kVector>
__global__ void __launch_bounds__(kThreads)
    MergedStatisticsKernel(Entries entries, LongRuns long_runs, int64_t dim,
                           GradientStatistics* statistics) {
  __shared__ Histogram histogram;
  histogram.Clear();
  const int lane = threadIdx.x % kWarpSize;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t first = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
       first < entries.count; first += stride) {
    const int length = RunLength(entries, first, lane);
    if (length == 0) continue;
    float partial[kLaneColumns] = {};
    for (int64_t column = lane * kLaneColumns;
         column < dim + lane * kLaneColumns; column += kGroupColumns) {
      const LaneRow<1> row = length == kLongRun
                                 ? LoadLongRun<1>(long_runs, first, column, dim)
                                 : SumShortRun<Gradient, kVector, 1>(
                                       entries, first, length, column, dim);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        partial[c] = partial[c] + row.x[0][c] * row.x[0][c];
      }
    }
    const float squares = FoldPartials(partial, lane);
    if (lane == 0) histogram.AddRow(squares);
  }
  histogram.AddTo(*statistics);
}

template <typename Gradient>
auto KernelFor(bool vector_rows) {
  return vector_rows ? MergedStatisticsKernel<Gradient, true>
                     : MergedStatisticsKernel<Gradient, false>;
}

}  // namespace

cudaError_t LaunchMergedStatistics(const Entries& entries,
                                   const LongRuns& long_runs, DType dtype,
                                   int64_t dim, bool vector_rows,
                                   GradientStatistics* statistics,
                                   cudaStream_t stream) {
  const auto kernel = dtype == DType::kFp32 ? KernelFor<float>(vector_rows)
                                            : KernelFor<uint16_t>(vector_rows);
  kernel<<<FewBlocksFor(entries.count, kWarps), kThreads, 0, stream>>>(
      entries, long_runs, dim, statistics);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
