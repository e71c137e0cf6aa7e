#ifndef ROWHOUSE_KERNELS_CUDA_SQUARE_SUM_CUH_
#define ROWHOUSE_KERNELS_CUDA_SQUARE_SUM_CUH_

#include "kernels/cuda/run_sum.cuh"

namespace rowhouse::kernels::cuda {

namespace internal {

// Folds `kCount` partial sums of each lane into half as many: lanes whose
// number differs in `kLane` share the work, each for the half it keeps. The
// pairs are those of the stated order; which of a pair comes first changes no
// bit.
template <int kCount, int kLane>
__device__ void FoldAcross(float (&partial)[kLaneColumns], int lane) {
  const bool upper = (lane & kLane) != 0;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const float kept = upper ? partial[i + kCount / 2] : partial[i];
    const float sent = upper ? partial[i] : partial[i + kCount / 2];
    partial[i] = kept + __shfl_xor_sync(kAllLanes, sent, kLane);
  }
}

}  // namespace internal

/// Folds a row's 256 partial sums by halves (arithmetic.h); lane `l` holds 8l
/// to 8l + 7. All lanes get the sum.
///
/// Offsets 128, 64 and 32 pair lanes 16, 8 and 4 apart; as each of the two
/// keeps half of the columns, that takes 4 + 2 + 1 shuffles. Then lane bits 16,
/// 8 and 4 stand for columns 4, 2 and 1 apart.
__device__ inline float FoldPartials(float (&partial)[kLaneColumns], int lane) {
  internal::FoldAcross<8, 16>(partial, lane);
  internal::FoldAcross<4, 8>(partial, lane);
  internal::FoldAcross<2, 4>(partial, lane);
  float sum = partial[0];
#pragma unroll
  for (const int other : {2, 1, 16, 8, 4}) {
    sum = sum + __shfl_xor_sync(kAllLanes, sum, other);
  }
  return sum;
}

/// Sum of squares of a row in the order of arithmetic.h, in all lanes. Columns
/// past the row's end are +0.
template <int kGroups>
__device__ float SumOfSquares(const LaneRow<kGroups>& row, int lane) {
  float partial[kLaneColumns];
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) {
    partial[c] = row.x[0][c] * row.x[0][c];
#pragma unroll
    for (int k = 1; k < kGroups; ++k) {
      partial[c] = partial[c] + row.x[k][c] * row.x[k][c];
    }
  }
  return FoldPartials(partial, lane);
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SQUARE_SUM_CUH_
