#ifndef ROWHOUSE_KERNELS_CUDA_RUN_CHUNKS_CUH_
#define ROWHOUSE_KERNELS_CUDA_RUN_CHUNKS_CUH_

/// The chunks of a run (arithmetic.h), as a warp sums them. Sources and sinks
/// are described in sum_runs.cuh.

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

namespace rowhouse::kernels::cuda::sum_runs {

inline constexpr int kChunk = static_cast<int>(kRunChunk);

// A run that holds two neighbouring multiples of this is long. So all of 31
// entries are, and none of 16.
inline constexpr int64_t kLong = 16;

// Adds `count` rows, those that lanes `lane ..` of the warp hold, to `sum` in
// order; `kRows` at a time are loaded before the first is added.
template <bool kVector, int kRows, typename Source>
__device__ void AddRows(const Source& source, uint64_t row, int lane, int count,
                        int64_t column, int64_t dim,
                        float (&sum)[kLaneColumns]) {
#pragma unroll 1
  for (int first = 0; first < count; first += kRows) {
    typename Source::Row rows[kRows];
    Columns<typename Source::Element> columns[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= count) break;
      rows[k] = source.At(__shfl_sync(kAllLanes, row, lane + first + k));
      columns[k] = source.template Load<kVector>(rows[k], column, dim);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= count) break;
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        sum[c] = sum[c] + source.Value(rows[k], column, c, columns[k].x[c]);
      }
    }
  }
}

// The slots and rows of one chunk, an entry a lane.
struct ChunkList {
  int64_t slot;
  uint64_t row;

  static __device__ ChunkList Load(const Entries& entries, int64_t first,
                                   int lane) {
    const int64_t at = first + lane;
    if (lane >= kChunk || at >= entries.count) return {-1, 0};
    return {entries.slots[at], entries.rows[at]};
  }
  // Entries of slot `of`; all the first ones.
  __device__ int CountOf(int64_t of, int lane) const {
    return __popc(__ballot_sync(kAllLanes, lane < kChunk && slot == of));
  }
};

// Whether the run of `slot` that begins at `first` is long.
__device__ inline bool IsLong(const Entries& entries, int64_t first,
                              int64_t slot) {
  const int64_t beyond = (first + kLong - 1) / kLong * kLong + kLong;
  return beyond < entries.count && entries.slots[beyond] == slot;
}

}  // namespace rowhouse::kernels::cuda::sum_runs

#endif  // ROWHOUSE_KERNELS_CUDA_RUN_CHUNKS_CUH_
