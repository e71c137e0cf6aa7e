#ifndef ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_
#define ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_

/// Run-sums (arithmetic.h) of sorted entries, each sum stored where its slot
/// is: one kernel. Its first blocks take the long runs, whose chunks the warps
/// of a block share; the others take the short ones, one warp each and group of
/// columns.
///
/// A source gives rows and a sink takes sums, 8 columns at a time:
///
///   Source::Row At(uint64_t row)              a row, from `Entries::rows`
///   Load<kVector>(row, column, dim) -> Columns<Element>
///   Value(row, column, c, element) -> float   element `column + c`, widened
///   Sink::State
///   Load<kVector>(slot, column, dim) -> State what the sum is to be added to
///   Store<kVector>(slot, column, dim, state, const float (&sum)[8])
///
/// Every row is read once and every sum is stored once: the bytes moved are
/// those of source and sink, and 24 bytes of list an entry and 256 columns.

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/run_chunks.cuh"
#include "kernels/cuda/sum_long_runs.cuh"

namespace rowhouse::kernels::cuda {
namespace sum_runs {

// Entries that a warp looks at, for a group of columns: it sums the runs that
// begin there, kAtOnce at a time, whose first rows and sinks come together.
inline constexpr int kEntriesOfWarp = 16;
inline constexpr int kAtOnce = 2;

// Entries around those of a warp, one a lane: the entry before, those and what
// follows.
struct Window {
  int64_t slot;
  uint64_t row;
  unsigned ends;  // Lanes whose entry is of another run than that before.

  static __device__ Window Load(const Entries& entries, int64_t first,
                                int lane) {
    const int64_t at = first - 1 + lane;
    const bool there = at >= 0 && at < entries.count;
    Window window;
    window.slot = there ? entries.slots[at] : -1;
    window.row = there ? entries.rows[at] : 0;
    const int64_t before = __shfl_up_sync(kAllLanes, window.slot, 1);
    window.ends = __ballot_sync(kAllLanes, lane > 0 && window.slot != before);
    return window;
  }
  // Entries of the run that begins in `lane`, at most a chunk.
  __device__ int FirstChunkOf(int lane) const {
    static_assert(kEntriesOfWarp + kChunk < kWarpSize);
    const int length = __ffs(static_cast<int>(ends >> (lane + 1)));
    return length == 0 || length > kChunk ? kChunk : length;
  }
};

// One warp: the runs that begin in kEntriesOfWarp entries from `first` on and
// are not long, for a group of columns.
template <bool kVector, typename Source, typename Sink>
__device__ void SumShortRuns(const Entries& entries, int64_t dim,
                             const Source& source, const Sink& sink,
                             int64_t first, int64_t column, int lane) {
  const Window window = Window::Load(entries, first, lane);
  unsigned heads =
      window.ends &
      __ballot_sync(kAllLanes,
                    lane <= kEntriesOfWarp && window.slot >= 0 &&
                        !IsLong(entries, first - 1 + lane, window.slot));
  while (heads != 0) {
    int lanes[kAtOnce];
    int64_t slots[kAtOnce];
    typename Source::Row rows[kAtOnce];
    Columns<typename Source::Element> firsts[kAtOnce];
    typename Sink::State states[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      lanes[i] = __ffs(static_cast<int>(heads)) - 1;
      heads &= heads - 1;
      if (lanes[i] < 0) break;
      slots[i] = __shfl_sync(kAllLanes, window.slot, lanes[i]);
      rows[i] = source.At(__shfl_sync(kAllLanes, window.row, lanes[i]));
      firsts[i] = source.template Load<kVector>(rows[i], column, dim);
      states[i] = sink.template Load<kVector>(slots[i], column, dim);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (lanes[i] < 0) break;
      int count = window.FirstChunkOf(lanes[i]);
      float sum[kLaneColumns];
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        sum[c] = 0.0F + source.Value(rows[i], column, c, firsts[i].x[c]);
      }
      AddRows<kVector, 1>(source, window.row, lanes[i] + 1, count - 1, column,
                          dim, sum);
      float total[kLaneColumns];
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) total[c] = 0.0F + sum[c];
      for (int64_t at = first - 1 + lanes[i]; count == kChunk;) {
        at += kChunk;
        const ChunkList chunk = ChunkList::Load(entries, at, lane);
        count = chunk.CountOf(slots[i], lane);
        float next[kLaneColumns] = {};
        AddRows<kVector, 1>(source, chunk.row, 0, count, column, dim, next);
#pragma unroll
        for (int c = 0; c < kLaneColumns; ++c) total[c] = total[c] + next[c];
      }
      sink.template Store<kVector>(slots[i], column, dim, states[i], total);
    }
  }
}

// After those blocks a warp takes some entries and a group of columns, groups
// fastest.
template <bool kVector, typename Source, typename Sink>
__global__ void __launch_bounds__(kThreads, 3)
    SumRunsKernel(Entries entries, int64_t dim, uint32_t groups, Source source,
                  Sink sink, uint32_t long_blocks) {
  if (blockIdx.x < long_blocks) {
    SumLongRuns<kVector>(entries, dim, groups, source, sink, long_blocks);
    return;
  }
  const uint32_t lane = threadIdx.x % kWarpSize;
  const uint32_t warp =
      (blockIdx.x - long_blocks) * kWarps + threadIdx.x / kWarpSize;
  const int64_t first = int64_t{warp / groups} * kEntriesOfWarp;
  const int64_t column =
      int64_t{warp % groups} * kGroupColumns + lane * kLaneColumns;
  if (first >= entries.count) return;
  SumShortRuns<kVector>(entries, dim, source, sink, first, column,
                        static_cast<int>(lane));
}

}  // namespace sum_runs

/// Enqueues the summing and storing of every run of `entries`. `vector_rows`:
/// rows of source and sink are `IsVectorRow`.
template <typename Source, typename Sink>
cudaError_t LaunchSumRuns(const Entries& entries, int64_t dim,
                          const Source& source, const Sink& sink,
                          bool vector_rows, cudaStream_t stream) {
  if (entries.count == 0 || dim == 0) return cudaSuccess;
  const int64_t groups = (dim + kGroupColumns - 1) / kGroupColumns;
  const int64_t warps = (entries.count + sum_runs::kEntriesOfWarp - 1) /
                        sum_runs::kEntriesOfWarp * groups;
  // One a multiprocessor; none where no run can be long.
  constexpr int64_t kMostLongBlocks = 132;
  const auto long_blocks = static_cast<uint32_t>(std::min(
      entries.count / (sum_runs::kLong + 1) * groups, kMostLongBlocks));
  const auto kernel = vector_rows
                          ? sum_runs::SumRunsKernel<true, Source, Sink>
                          : sum_runs::SumRunsKernel<false, Source, Sink>;
  kernel<<<long_blocks + BlocksFor(warps, kWarps), kThreads, 0, stream>>>(
      entries, dim, static_cast<uint32_t>(groups), source, sink, long_blocks);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_
