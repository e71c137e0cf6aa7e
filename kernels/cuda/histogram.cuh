#ifndef ROWHOUSE_KERNELS_CUDA_HISTOGRAM_CUH_
#define ROWHOUSE_KERNELS_CUDA_HISTOGRAM_CUH_

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// `GradientStatistics` of a block, in shared memory: integer sums, which have
/// no order.
struct Histogram {
  unsigned long long sums[GradientStatistics::kExponents];
  unsigned long long rows;
  unsigned long long non_finite_rows;

  /// All threads call it first.
  __device__ void Clear() {
    for (int i = threadIdx.x; i < GradientStatistics::kExponents;
         i += blockDim.x) {
      sums[i] = 0;
    }
    if (threadIdx.x == 0) rows = non_finite_rows = 0;
    __syncthreads();
  }

  /// Adds one row's sum of squares, exactly; one thread a row calls it.
  __device__ void AddRow(float sum_of_squares) {
    atomicAdd(&rows, 1ULL);
    if (!IsFinite(sum_of_squares)) {
      atomicAdd(&non_finite_rows, 1ULL);
      return;
    }
    const SquareTerm term = SquareTerm::Of(sum_of_squares);
    atomicAdd(&sums[term.exponent], uint64_t{term.significand});
  }

  /// All threads call it last.
  __device__ void AddTo(GradientStatistics& statistics) {
    __syncthreads();
    const auto add = [](int64_t& sum, unsigned long long value) {
      if (value == 0) return;
      atomicAdd(reinterpret_cast<unsigned long long*>(&sum), value);
    };
    for (int i = threadIdx.x; i < GradientStatistics::kExponents;
         i += blockDim.x) {
      add(statistics.significand_sums[i], sums[i]);
    }
    if (threadIdx.x == 0) {
      add(statistics.row_count, rows);
      add(statistics.non_finite_row_count, non_finite_rows);
    }
  }
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_HISTOGRAM_CUH_
