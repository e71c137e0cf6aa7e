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

#include "kernels/arithmetic.h"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

namespace rowhouse::kernels::cuda {
namespace sum_runs {

inline constexpr int kChunk = static_cast<int>(kRunChunk);

// A run that holds two neighbouring multiples of this is long. So all of 31
// entries are, and none of 16.
inline constexpr int64_t kLong = 16;

// Entries that a warp looks at, for a group of columns: it sums the runs that
// begin there, kAtOnce at a time, whose first rows and sinks come together.
inline constexpr int kEntriesOfWarp = 16;
inline constexpr int kAtOnce = 2;

// Rows of a long run that a warp has on their way at once: 40 registers.
template <typename Element>
inline constexpr int kInFlight = sizeof(Element) == 2 ? kChunk : kChunk / 2;

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

// Whether the run of `slot` that begins at `first` is long.
__device__ inline bool IsLong(const Entries& entries, int64_t first,
                              int64_t slot) {
  const int64_t beyond = (first + kLong - 1) / kLong * kLong + kLong;
  return beyond < entries.count && entries.slots[beyond] == slot;
}

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
