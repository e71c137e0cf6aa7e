#ifndef ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_
#define ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_

/// Run-sums (arithmetic.h) of sorted entries, each sum stored where its slot
/// is: one kernel for all runs, short and long.
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
/// those of source and sink, and 16 bytes an entry and 2048 columns.

#include <algorithm>
#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

namespace rowhouse::kernels::cuda {
namespace sum_runs {

inline constexpr int kChunk = static_cast<int>(kRunChunk);

// A run that holds two multiples of this is long: blocks share its columns and
// their warps its chunks. Shorter ones are summed by one warp a group of
// columns.
inline constexpr int64_t kLong = kWarpSize;

// Chunks that a warp sums of a long run between two barriers.
inline constexpr int kChunksAtOnce = 2;

// How rows are cut: a warp takes a group of 256 columns, a block up to kWarps
// groups of an entry, or all groups of some entries.
struct Cut {
  int64_t dim;
  int groups;        // Of a block and an entry.
  int entries;       // Of a block.
  int64_t blocks_y;  // To cover a row.

  static Cut Of(int64_t dim) {
    const int64_t groups = (dim + kGroupColumns - 1) / kGroupColumns;
    const int64_t blocks_y = (groups + kWarps - 1) / kWarps;
    const auto of_block = static_cast<int>((groups + blocks_y - 1) / blocks_y);
    return {dim, of_block, kWarps / of_block, blocks_y};
  }
};

// Sums the first `count` entries of a chunk, whose rows the first lanes of the
// warp hold, from +0. As many loads are in flight as registers allow.
template <bool kVector, typename Source>
__device__ void SumChunk(const Source& source, uint64_t row, int count,
                         int64_t column, int64_t dim,
                         float (&sum)[kLaneColumns]) {
  constexpr int kInFlight = kChunk / 2;
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) sum[c] = 0.0F;
#pragma unroll
  for (int first = 0; first < kChunk; first += kInFlight) {
    if (first >= count) break;
    typename Source::Row rows[kInFlight];
    Columns<typename Source::Element> columns[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (first + k >= count) break;
      rows[k] = source.At(__shfl_sync(kAllLanes, row, first + k));
      columns[k] = source.template Load<kVector>(rows[k], column, dim);
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
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

// One warp: the run that begins at `first`, if one does that is not long, for a
// group of columns.
template <bool kVector, typename Source, typename Sink>
__device__ void SumShortRun(const Entries& entries, int64_t dim,
                            const Source& source, const Sink& sink,
                            int64_t first, int64_t column, int lane) {
  // One trip to memory: the first chunk, the entry before it, and that which a
  // long run would hold.
  const int64_t beyond = (first + kLong - 1) / kLong * kLong + kLong;
  ChunkList chunk = ChunkList::Load(entries, first, lane);
  const bool looks_back = lane == kChunk && first > 0;
  const bool looks_on = lane == kChunk + 1 && beyond < entries.count;
  if (looks_back || looks_on) {
    chunk.slot = entries.slots[looks_back ? first - 1 : beyond];
  }
  const int64_t slot = __shfl_sync(kAllLanes, chunk.slot, 0);
  const bool elsewhere = (looks_back || looks_on) && chunk.slot == slot;
  if (__any_sync(kAllLanes, elsewhere)) return;

  const auto state = sink.template Load<kVector>(slot, column, dim);
  float total[kLaneColumns] = {};
  int count = chunk.CountOf(slot, lane);
  for (int64_t at = first; count > 0;) {
    float sum[kLaneColumns];
    SumChunk<kVector>(source, chunk.row, count, column, dim, sum);
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) total[c] = total[c] + sum[c];
    if (count < kChunk) break;
    at += kChunk;
    chunk = ChunkList::Load(entries, at, lane);
    count = chunk.CountOf(slot, lane);
  }
  sink.template Store<kVector>(slot, column, dim, state, total);
}

// One block: the long run that begins at `first`, for a group of columns. Warp
// w sums chunks w and w + kWarps of a step; then a thread a column adds the
// step's chunk sums in order.
template <bool kVector, typename Source, typename Sink>
__device__ void SumLongRun(const Entries& entries, int64_t dim,
                           const Source& source, const Sink& sink,
                           int64_t first, int64_t first_column) {
  constexpr int kStep = kWarps * kChunksAtOnce;
  static_assert(kGroupColumns == kThreads);
  __shared__ float sums[kStep][kGroupColumns];
  __shared__ int last_count;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int64_t column = first_column + lane * kLaneColumns;
  const int64_t slot = entries.slots[first];
  float total = 0.0F;
  bool more = true;
  for (int64_t at = first; more; at += kStep * kChunk) {
#pragma unroll 1
    for (int chunk = warp; chunk < kStep; chunk += kWarps) {
      const ChunkList list =
          ChunkList::Load(entries, at + chunk * kChunk, lane);
      const int count = list.CountOf(slot, lane);
      float sum[kLaneColumns];
      SumChunk<kVector>(source, list.row, count, column, dim, sum);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        sums[chunk][lane * kLaneColumns + c] = sum[c];
      }
      if (chunk == kStep - 1 && lane == 0) last_count = count;
    }
    __syncthreads();
    // Chunks beyond the run are sums of nothing: +0 changes no total, for that
    // is never -0.
#pragma unroll
    for (int k = 0; k < kStep; ++k) total = total + sums[k][threadIdx.x];
    more = last_count == kChunk;
    __syncthreads();
  }
  sums[0][threadIdx.x] = total;
  __syncthreads();
  if (warp > 0) return;
  float row[kLaneColumns];
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) {
    row[c] = sums[0][lane * kLaneColumns + c];
  }
  const auto state = sink.template Load<kVector>(slot, column, dim);
  sink.template Store<kVector>(slot, column, dim, state, row);
}

// Where the run begins that holds `at`, a multiple of kLong, but not the
// multiple before it.
__device__ inline int64_t RunStart(const Entries& entries, int64_t at) {
  static_assert(kLong == kWarpSize);
  const int64_t lane = threadIdx.x % kWarpSize;
  const bool equal =
      lane <= at && entries.slots[at - lane] == entries.slots[at];
  return at + 1 - __popc(__ballot_sync(kAllLanes, equal));
}

// Blocks `[0, block_count)`: all long runs, for the columns from `first_column`
// on, `groups` groups of them.
template <bool kVector, typename Source, typename Sink>
__device__ void SumLongRuns(const Entries& entries, int64_t dim,
                            const Source& source, const Sink& sink,
                            int64_t first_column, int64_t groups,
                            int64_t block_count) {
  __shared__ int64_t runs[kThreads];  // The first multiple of kLong in each.
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
                          first_column + mine % groups * kGroupColumns);
      __syncthreads();  // Before its memory is overwritten.
    }
    mine -= run_count * groups;
    __syncthreads();  // Before `runs` is.
  }
}

template <bool kVector, typename Source, typename Sink>
__global__ void __launch_bounds__(kThreads, 3)
    SumRunsKernel(Entries entries, Cut cut, Source source, Sink sink,
                  int64_t long_blocks) {
  const int64_t block_column = int64_t{blockIdx.y} * cut.groups * kGroupColumns;
  if (blockIdx.x < long_blocks) {
    const int64_t groups =
        (cut.dim - block_column + kGroupColumns - 1) / kGroupColumns;
    SumLongRuns<kVector>(entries, cut.dim, source, sink, block_column,
                         min(groups, int64_t{cut.groups}), long_blocks);
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int entry = warp / cut.groups;
  const int64_t first = (blockIdx.x - long_blocks) * cut.entries + entry;
  const int64_t column =
      block_column + warp % cut.groups * kGroupColumns + lane * kLaneColumns;
  if (entry >= cut.entries || first >= entries.count) return;
  SumShortRun<kVector>(entries, cut.dim, source, sink, first, column, lane);
}

}  // namespace sum_runs

/// Enqueues the summing and storing of every run of `entries`. `vector_rows`:
/// rows of source and sink are `IsVectorRow`.
template <typename Source, typename Sink>
cudaError_t LaunchSumRuns(const Entries& entries, int64_t dim,
                          const Source& source, const Sink& sink,
                          bool vector_rows, cudaStream_t stream) {
  if (entries.count == 0 || dim == 0) return cudaSuccess;
  // Two a multiprocessor; none where no run can be long.
  constexpr int64_t kLongBlocks = 264;
  const auto cut = sum_runs::Cut::Of(dim);
  const int64_t long_blocks = entries.count > sum_runs::kLong ? kLongBlocks : 0;
  const int64_t blocks =
      long_blocks + (entries.count + cut.entries - 1) / cut.entries;
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>(cut.blocks_y));
  const auto kernel = vector_rows
                          ? sum_runs::SumRunsKernel<true, Source, Sink>
                          : sum_runs::SumRunsKernel<false, Source, Sink>;
  kernel<<<grid, kThreads, 0, stream>>>(entries, cut, source, sink,
                                        long_blocks);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SUM_RUNS_CUH_
