#ifndef ROWHOUSE_KERNELS_CUDA_SUM_LONG_RUNS_CUH_
#define ROWHOUSE_KERNELS_CUDA_SUM_LONG_RUNS_CUH_

/// Run-sums of long runs: the warps of a block share a run's chunks.

#include <cstdint>

#include "kernels/cuda/run_chunks.cuh"

namespace rowhouse::kernels::cuda::sum_runs {

// Rows of a long run that a warp has on their way at once: 40 registers.
template <typename Element>
inline constexpr int kInFlight = sizeof(Element) == 2 ? kChunk : kChunk / 2;

// One block: the long run that begins at `first`, for a group of columns. Each
// warp sums a chunk of a step; then a thread a column adds the step's chunk
// sums in order.
template <bool kVector, typename Source, typename Sink>
__device__ void SumLongRun(const Entries& entries, int64_t dim,
                           const Source& source, const Sink& sink,
                           int64_t first, int64_t first_column) {
  __shared__ float sums[kWarps][kGroupColumns];
  __shared__ int last_count;
  static_assert(kGroupColumns == kThreads);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int64_t column = first_column + lane * kLaneColumns;
  const int64_t slot = entries.slots[first];
  int64_t at = first + warp * kChunk;
  ChunkList list = ChunkList::Load(entries, at, lane);
  float total = 0.0F;
  for (bool more = true; more;) {
    const int count = list.CountOf(slot, lane);
    const uint64_t row = list.row;
    at += kWarps * kChunk;
    list = ChunkList::Load(entries, at, lane);  // While the rows come.
    float sum[kLaneColumns] = {};
    AddRows<kVector, kInFlight<typename Source::Element>>(source, row, 0, count,
                                                          column, dim, sum);
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      sums[warp][lane * kLaneColumns + c] = sum[c];
    }
    if (warp == kWarps - 1 && lane == 0) last_count = count;
    __syncthreads();
    // Chunks beyond the run are sums of nothing: +0 changes no total, for that
    // is never -0.
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total = total + sums[w][threadIdx.x];
    more = last_count == kChunk;
    __syncthreads();
  }
  sums[0][threadIdx.x] = total;
  __syncthreads();
  if (warp > 0) return;
  float row_sum[kLaneColumns];
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) {
    row_sum[c] = sums[0][lane * kLaneColumns + c];
  }
  const auto state = sink.template Load<kVector>(slot, column, dim);
  sink.template Store<kVector>(slot, column, dim, state, row_sum);
}

// Where the run begins that holds `at`, a multiple of kLong, but not the
// multiple before it.
__device__ inline int64_t RunStart(const Entries& entries, int64_t at) {
  static_assert(kLong <= kWarpSize);
  const int64_t lane = threadIdx.x % kWarpSize;
  const bool equal = lane < kLong && lane <= at &&
                     entries.slots[at - lane] == entries.slots[at];
  return at + 1 - __popc(__ballot_sync(kAllLanes, equal));
}

// Blocks `[0, block_count)` find all long runs, some multiples of kLong at a
// time, and sum their share of them, a piece being a run and a group of
// columns.
template <bool kVector, typename Source, typename Sink>
__device__ void SumLongRuns(const Entries& entries, int64_t dim, int64_t groups,
                            const Source& source, const Sink& sink,
                            int64_t block_count) {
  __shared__ int64_t runs[kThreads];  // The first multiple of each.
  __shared__ int warp_counts[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int64_t mine =
      blockIdx.x;  // The next piece, counted from the window's first.
  for (int64_t window = 0; window < entries.count; window += kThreads * kLong) {
    const int64_t at = window + threadIdx.x * kLong;
    const bool starts =
        at + kLong < entries.count &&
        entries.slots[at] == entries.slots[at + kLong] &&
        (at == 0 || entries.slots[at - kLong] != entries.slots[at]);
    const unsigned ballot = __ballot_sync(kAllLanes, starts);
    if (lane == 0) warp_counts[warp] = __popc(ballot);
    __syncthreads();
    int before = 0;
    int run_count = 0;
    for (int w = 0; w < kWarps; ++w) {
      before += w < warp ? warp_counts[w] : 0;
      run_count += warp_counts[w];
    }
    if (starts) runs[before + __popc(ballot & ((1U << lane) - 1))] = at;
    __syncthreads();
    for (; mine < run_count * groups; mine += block_count) {
      SumLongRun<kVector>(entries, dim, source, sink,
                          RunStart(entries, runs[mine / groups]),
                          mine % groups * kGroupColumns);
      __syncthreads();  // Before its memory is overwritten.
    }
    mine -= run_count * groups;
    __syncthreads();  // Before `runs` is.
  }
}

}  // namespace rowhouse::kernels::cuda::sum_runs

#endif  // ROWHOUSE_KERNELS_CUDA_SUM_LONG_RUNS_CUH_
