#ifndef ROWHOUSE_KERNELS_CUDA_RUN_SUM_CUH_
#define ROWHOUSE_KERNELS_CUDA_RUN_SUM_CUH_

/// The run-sum of a row's entries (arithmetic.h) in the registers of a warp.

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/runs.h"

namespace rowhouse::kernels::cuda {

/// Entries of the run that begins at `first`, at most kLongRun (which stands
/// for a long run), or 0 where none begins there. The same in all lanes.
__device__ inline int RunLength(const Entries& entries, int64_t first,
                                int lane) {
  const int64_t slot = entries.slots[first];
  if (first > 0 && entries.slots[first - 1] == slot) return 0;
  const int64_t at = first + lane;
  const unsigned same =
      __ballot_sync(kAllLanes, at < entries.count && entries.slots[at] == slot);
  return same == kAllLanes ? kLongRun : __ffs(static_cast<int>(~same)) - 1;
}

/// Gradient columns of a lane, kGroups groups.
template <int kGroups>
struct LaneRow {
  float x[kGroups][kLaneColumns];
};

/// The sum of `length < kLongRun` entries from `first` on: the lane's columns
/// of groups `column / 256 ..`, `column` being its first.
template <typename Gradient, bool kVector, int kGroups>
__device__ LaneRow<kGroups> SumShortRun(const Entries& entries, int64_t first,
                                        int length, int64_t column,
                                        int64_t dim) {
  const int lane = threadIdx.x % kWarpSize;
  const uint64_t rows = lane < length ? entries.rows[first + lane] : 0;
  LaneRow<kGroups> chunk;
  LaneRow<kGroups> total;
  for (int entry = 0; entry < length; ++entry) {
    const auto* row =
        reinterpret_cast<const Gradient*>(__shfl_sync(kAllLanes, rows, entry));
    Columns<Gradient> now[kGroups];
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
      now[k] = LoadColumns<kVector>(row, column + k * kGroupColumns, dim);
    }
    const bool begins = entry % kRunChunk == 0;
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        const float before = begins ? 0.0F : chunk.x[k][c];
        // A first chunk is the total: +0 adds nothing to a sum from +0.
        if (begins && entry > 0) {
          total.x[k][c] = entry == kRunChunk ? chunk.x[k][c]
                                             : total.x[k][c] + chunk.x[k][c];
        }
        chunk.x[k][c] = before + Widen(now[k].x[c]);
      }
    }
  }
  if (length <= kRunChunk) return chunk;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      total.x[k][c] = total.x[k][c] + chunk.x[k][c];
    }
  }
  return total;
}

/// A lane's columns of the sum of the long run that begins at `first`.
template <int kGroups>
__device__ LaneRow<kGroups> LoadLongRun(const LongRuns& long_runs,
                                        int64_t first, int64_t column,
                                        int64_t dim) {
  const float* const sum = long_runs.sums + first / kLongRun * dim;
  LaneRow<kGroups> row;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    const Columns<float> columns =
        LoadColumns<false>(sum, column + k * kGroupColumns, dim);
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) row.x[k][c] = columns.x[c];
  }
  return row;
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_RUN_SUM_CUH_
