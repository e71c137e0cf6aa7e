#include <cub/block/block_scan.cuh>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/ngram_want.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kWordRows = 32;
constexpr int kThreadWords = RowBits::kTileRows / kWordRows / kThreads;

// Most ids of natural tokens are repeats, for which a look is enough: one that
// comes too early is only made good by the atomic.
__device__ void Mark(const RowBits& bits, int64_t row_id) {
  uint32_t* const word = bits.words + row_id / kWordRows;
  const uint32_t bit = 1U << (row_id % kWordRows);
  if ((__ldcg(word) & bit) != 0 || (atomicOr(word, bit) & bit) != 0) return;
  atomicAdd(&bits.counts[row_id / RowBits::kTileRows], 1U);
}

__global__ void __launch_bounds__(kThreads)
    MarkNgramRowsKernel(const int32_t* __restrict__ tokens, int64_t count,
                        NgramLayout layout, RowBits bits) {
  const int64_t t = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= count) return;
  Mark(bits, BigramRowId(tokens, t, layout));
  Mark(bits, TrigramRowId(tokens, t, layout));
}

// A block a tile: the counts of those before say where its rows go, a scan
// where each thread's.
__global__ void __launch_bounds__(kThreads)
    ListRowsKernel(RowBits bits, int64_t* __restrict__ want, int64_t room,
                   int64_t* want_count) {
  using Scan = cub::BlockScan<uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ uint32_t before;  // Fewer than 2^31 rows are in a table.
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  uint32_t others = 0;
  for (unsigned tile = threadIdx.x; tile < blockIdx.x; tile += kThreads) {
    others += bits.counts[tile];
  }
  others = __reduce_add_sync(kAllLanes, others);
  if (threadIdx.x % kWarpSize == 0) atomicAdd(&before, others);

  const int64_t first_word =
      (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kThreadWords;
  uint4 words[kThreadWords / 4];
  uint32_t own = 0;
#pragma unroll
  for (int i = 0; i < kThreadWords / 4; ++i) {
    words[i] = reinterpret_cast<const uint4*>(bits.words + first_word)[i];
    own += __popc(words[i].x) + __popc(words[i].y) + __popc(words[i].z) +
           __popc(words[i].w);
  }
  uint32_t place = 0;
  uint32_t total = 0;
  Scan(scan).ExclusiveSum(own, place, total);
  __syncthreads();  // `before` is whole.
  int64_t to = int64_t{before} + place;

  int64_t row_id = first_word * kWordRows;
  const auto list = [&](uint32_t word) {
    for (; word != 0; word &= word - 1) {
      if (to < room) want[to] = row_id + __ffs(static_cast<int>(word)) - 1;
      ++to;
    }
    row_id += kWordRows;
  };
#pragma unroll
  for (int i = 0; i < kThreadWords / 4; ++i) {
    list(words[i].x);
    list(words[i].y);
    list(words[i].z);
    list(words[i].w);
  }
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 0) {
    *want_count = int64_t{before} + total;
  }
}

}  // namespace

RowBits RowBits::Cut(ScratchCutter& cutter, int64_t table_row_count) {
  RowBits bits;
  bits.tile_count = (table_row_count + kTileRows - 1) / kTileRows;
  bits.words =
      reinterpret_cast<uint32_t*>(cutter.Take<char>(bits.size_bytes()));
  bits.counts = bits.words + bits.tile_count * kTileRows / kWordRows;
  return bits;
}

cudaError_t LaunchMarkNgramRows(std::span<const int32_t> tokens,
                                int64_t table_row_count, const RowBits& bits,
                                cudaStream_t stream) {
  if (tokens.empty()) return cudaSuccess;
  const auto count = static_cast<int64_t>(tokens.size());
  MarkNgramRowsKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
      tokens.data(), count, NgramLayout::Of(table_row_count), bits);
  return cudaGetLastError();
}

cudaError_t LaunchListRows(const RowBits& bits, std::span<int64_t> want,
                           int64_t* want_count, cudaStream_t stream) {
  ListRowsKernel<<<static_cast<unsigned>(bits.tile_count), kThreads, 0,
                   stream>>>(bits, want.data(),
                             static_cast<int64_t>(want.size()), want_count);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
