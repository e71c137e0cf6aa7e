#include "kernels/cuda/run_sum.cuh"
#include "kernels/cuda/runs.h"

namespace rowhouse::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    FindRunsKernel(Entries entries, LongRuns long_runs, RunCounts* counts) {
  __shared__ unsigned block_runs;
  if (counts->unordered != 0) return;
  if (threadIdx.x == 0) block_runs = 0;
  __syncthreads();
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  const int64_t* const slots = entries.slots;
  unsigned runs = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < entries.count; i += stride) {
    if (i > 0 && slots[i - 1] == slots[i]) continue;
    ++runs;
    const int64_t last = i + kLongRun - 1;
    if (last < entries.count && slots[last] == slots[i]) {
      long_runs.heads[atomicAdd(&counts->long_runs, 1ULL)] = i;
    }
  }
  runs = __reduce_add_sync(kAllLanes, runs);
  if (threadIdx.x % kWarpSize == 0) atomicAdd(&block_runs, runs);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&counts->runs, block_runs);
}

constexpr int kSumWarps = 16;

// The end of the run at `first`, by halving.
__device__ int64_t RunEnd(const Entries& entries, int64_t first) {
  const int64_t slot = entries.slots[first];
  int64_t in = first + kLongRun - 1;
  int64_t out = entries.count;
  while (out - in > 1) {
    const int64_t middle = in + (out - in) / 2;
    (entries.slots[middle] == slot ? in : out) = middle;
  }
  return out;
}

// The sum of one chunk, entries `[first, last)`: all rows are asked for before
// the first is added.
template <typename Gradient, bool kVector>
__device__ Columns<float> SumChunk(const Entries& entries, int64_t first,
                                   int64_t last, int64_t column, int64_t dim) {
  Columns<Gradient> rows[kRunChunk];
#pragma unroll
  for (int i = 0; i < kRunChunk; ++i) {
    if (first + i < last) {
      rows[i] = LoadColumns<kVector>(
          reinterpret_cast<const Gradient*>(entries.rows[first + i]), column,
          dim);
    }
  }
  Columns<float> sum = {};
#pragma unroll
  for (int i = 0; i < kRunChunk; ++i) {
    if (first + i < last) {
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        sum.x[c] = sum.x[c] + Widen(rows[i].x[c]);
      }
    }
  }
  return sum;
}

// A piece of work is 256 columns of one run. Its warps sum kSumWarps chunks at
// a time; then thread `c` adds column `c` of them in order.
template <typename Gradient, bool kVector>
__global__ void __launch_bounds__(kSumWarps* kWarpSize)
    SumLongRunsKernel(Entries entries, LongRuns long_runs, int64_t dim) {
  __shared__ float chunks[kSumWarps][kGroupColumns];
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int64_t group_count = (dim + kGroupColumns - 1) / kGroupColumns;
  const auto run_count = static_cast<int64_t>(*long_runs.count);
  for (int64_t piece = blockIdx.x; piece < run_count * group_count;
       piece += gridDim.x) {
    const int64_t first = long_runs.heads[piece / group_count];
    const int64_t first_column = piece % group_count * kGroupColumns;
    const int64_t end = RunEnd(entries, first);
    float total = 0.0F;
    for (int64_t round = first; round < end; round += kSumWarps * kRunChunk) {
      const int64_t begin = round + warp * kRunChunk;
      if (begin < end) {
        const int64_t last = min(begin + kRunChunk, end);
        *reinterpret_cast<Columns<float>*>(&chunks[warp][lane * kLaneColumns]) =
            SumChunk<Gradient, kVector>(
                entries, begin, last, first_column + lane * kLaneColumns, dim);
      }
      __syncthreads();
      if (threadIdx.x < kGroupColumns) {
        for (int i = 0; i < kSumWarps; ++i) {
          if (round + i * kRunChunk < end) {
            total = total + chunks[i][threadIdx.x];
          }
        }
      }
      __syncthreads();
    }
    const int64_t column = first_column + threadIdx.x;
    if (threadIdx.x < kGroupColumns && column < dim) {
      long_runs.sums[first / kLongRun * dim + column] = total;
    }
  }
}

template <typename Gradient>
auto SumKernelOf(bool vector_rows) {
  return vector_rows ? SumLongRunsKernel<Gradient, true>
                     : SumLongRunsKernel<Gradient, false>;
}

}  // namespace

LongRuns LongRuns::Cut(ScratchCutter& cutter, int64_t entry_count,
                       int64_t dim) {
  LongRuns runs;
  const int64_t most = (entry_count + kLongRun - 1) / kLongRun;
  runs.heads = cutter.Take<int64_t>(most);
  runs.sums = cutter.Take<float>(most * dim);
  return runs;
}

cudaError_t LaunchFindRuns(const Entries& entries, const LongRuns& long_runs,
                           RunCounts* counts, cudaStream_t stream) {
  FindRunsKernel<<<FewBlocksFor(entries.count, kThreads), kThreads, 0,
                   stream>>>(entries, long_runs, counts);
  return cudaGetLastError();
}

cudaError_t LaunchSumLongRuns(const Entries& entries, const LongRuns& long_runs,
                              DType dtype, int64_t dim, bool vector_rows,
                              cudaStream_t stream) {
  if (entries.count < kLongRun) return cudaSuccess;
  const auto kernel = dtype == DType::kBf16 ? SumKernelOf<uint16_t>(vector_rows)
                      : dtype == DType::kFp32 ? SumKernelOf<float>(vector_rows)
                                              : SumKernelOf<Fp16>(vector_rows);
  const int64_t most_pieces =
      entries.count / kLongRun * ((dim + kGroupColumns - 1) / kGroupColumns);
  kernel<<<FewBlocksFor(most_pieces, 1), kSumWarps * kWarpSize, 0, stream>>>(
      entries, long_runs, dim);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
