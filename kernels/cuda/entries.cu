#include <algorithm>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"

namespace rowhouse::kernels::cuda {
namespace {

// The parts of one launch, passed by value.
struct PartBatch {
  static constexpr int kParts = 64;

  const int64_t* slots[kParts];
  uint64_t rows[kParts];
  int64_t end[kParts];  // Entries of the batch up to and with each part's.
  int part_count = 0;
  int64_t entry_count = 0;
  int64_t row_stride_bytes = 0;

  __host__ __device__ int64_t CountOf(int part) const {
    return end[part] - (part == 0 ? 0 : end[part - 1]);
  }

  bool Add(const GradientPart& part) {
    if (part_count == kParts) return false;
    entry_count += part.row_count;
    slots[part_count] = part.slots;
    rows[part_count] = reinterpret_cast<uint64_t>(part.rows);
    end[part_count] = entry_count;
    ++part_count;
    return true;
  }
};

struct Entry {
  int64_t slot;
  uint64_t row;
};

__device__ Entry EntryAt(const PartBatch& batch, int64_t i) {
  int part = 0;
  while (i >= batch.end[part]) ++part;
  const int64_t position = i - (part == 0 ? 0 : batch.end[part - 1]);
  return {batch.slots[part][position],
          batch.rows[part] +
              static_cast<uint64_t>(position * batch.row_stride_bytes)};
}

__global__ void __launch_bounds__(kThreads)
    GatherEntriesKernel(const __grid_constant__ PartBatch batch,
                        int64_t* __restrict__ slots,
                        uint64_t* __restrict__ rows) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < batch.entry_count; i += stride) {
    const Entry entry = EntryAt(batch, i);
    slots[i] = entry.slot;
    rows[i] = entry.row;
  }
}

// A sort in one launch, for as many entries as let it beat a radix sort, whose
// passes are launches: every block ranks some entries among all.
constexpr int64_t kMostRanked = 32768;
constexpr int kRankThreads = 512;
constexpr int kRanked = 64;  // Entries that a block ranks.

// An entry as a number; no two are equal.
__device__ uint64_t RankKey(const PartBatch& batch, int64_t i) {
  return static_cast<uint64_t>(EntryAt(batch, i).slot) << 32 |
         static_cast<uint64_t>(i);
}

// Where the `i`-th of a block's sorted keys is: the steps of a search are
// powers of two, and so would meet in few banks of shared memory.
__device__ int PlaceOf(int i) { return i + i / 16; }
constexpr int kPlaces = kRanked + kRanked / 16;

// How many of `sorted` are at most `key`.
__device__ int CountNotAbove(const uint64_t (&sorted)[kPlaces], uint64_t key) {
  int count = 0;
#pragma unroll
  for (int step = kRanked / 2; step > 0; step /= 2) {
    if (sorted[PlaceOf(count + step - 1)] <= key) count += step;
  }
  return count + (sorted[PlaceOf(count)] <= key ? 1 : 0);
}

// The block's entries are put in order, all entries are counted into the gaps
// between them, and the counts so far are the ranks. Every block reads all
// slots.
__global__ void __launch_bounds__(kRankThreads)
    RankSortKernel(const __grid_constant__ PartBatch batch,
                   int64_t* __restrict__ slots, uint64_t* __restrict__ rows) {
  __shared__ uint64_t mine[kRanked];
  __shared__ uint64_t sorted[kPlaces];
  __shared__ int gaps[kRanked];  // Entries below each of `sorted` and no other.
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first = int64_t{blockIdx.x} * kRanked;
  if (thread < kRanked) {
    const int64_t i = first + thread;
    // Places beyond the last entry sort behind all others.
    mine[thread] = i < batch.entry_count ? RankKey(batch, i)
                                         : ~uint64_t{0} - (kRanked - thread);
    gaps[thread] = 0;
  }
  __syncthreads();
  constexpr int kThreadsOfEntry = kRankThreads / kRanked;
  const uint64_t key = mine[thread / kThreadsOfEntry];
  int rank = 0;
#pragma unroll
  for (int i = 0; i < kRanked; i += kThreadsOfEntry) {
    rank += mine[i + thread % kThreadsOfEntry] < key ? 1 : 0;
  }
#pragma unroll
  for (int offset = kThreadsOfEntry / 2; offset > 0; offset /= 2) {
    rank += __shfl_xor_sync(kAllLanes, rank, offset);
  }
  if (thread % kThreadsOfEntry == 0) sorted[PlaceOf(rank)] = key;
  __syncthreads();

  // The lowest gap may take most entries: it is counted in registers.
  int lowest = 0;
#pragma unroll 8
  for (int64_t i = thread; i < batch.entry_count; i += kRankThreads) {
    const int gap = CountNotAbove(sorted, RankKey(batch, i));
    lowest += gap == 0 ? 1 : 0;
    if (gap > 0 && gap < kRanked) atomicAdd(&gaps[gap], 1);
  }
  lowest = __reduce_add_sync(kAllLanes, lowest);
  if (thread % kWarpSize == 0) atomicAdd(&gaps[0], lowest);
  __syncthreads();

  if (thread >= kWarpSize) return;
  static_assert(kRanked == 2 * kWarpSize);
  const int low = gaps[2 * thread];
  const int both = low + gaps[2 * thread + 1];
  int sum = both;  // Over the lanes up to this one.
#pragma unroll
  for (int offset = 1; offset < kWarpSize; offset *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, offset);
    if (thread >= offset) sum += other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (first + 2 * thread + i >= batch.entry_count) continue;
    const int64_t to = sum - both + (i == 0 ? low : both);
    const uint64_t ranked = sorted[PlaceOf(2 * thread + i)];
    slots[to] = static_cast<int64_t>(ranked >> 32);
    rows[to] = EntryAt(batch, static_cast<uint32_t>(ranked)).row;
  }
}

constexpr int kMostMerged = 16;  // Parts.

// How many of `slots`, which increase, are below `limit`: by halving, of a
// number in `[low, high]`.
__device__ int CountBelow(const int64_t* slots, int64_t limit, int low,
                          int high) {
  int step = low < high ? 1 << (31 - __clz(high - low)) : 0;
  for (; step > 0; step /= 2) {
    const int next = low + step;
    if (next <= high && slots[next - 1] < limit) low = next;
  }
  return low;
}

// A warp takes 32 entries of a part. The place of one is its position in its
// part, and the entries before it in each other: of the same slot, those of
// earlier parts. Two lanes a part find where the warp's first and last entry
// belong; between these every lane looks for its own.
__global__ void __launch_bounds__(kThreads)
    MergePartsKernel(const __grid_constant__ PartBatch batch,
                     int64_t* __restrict__ slots, uint64_t* __restrict__ rows,
                     int32_t* unordered) {
  static_assert(2 * kMostMerged == kWarpSize);
  const int lane = threadIdx.x % kWarpSize;
  int64_t tile = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  int own = 0;
  for (; own < batch.part_count; ++own) {
    const int64_t tiles = (batch.CountOf(own) + kWarpSize - 1) / kWarpSize;
    if (tile < tiles) break;
    tile -= tiles;
  }
  if (own == batch.part_count) return;
  const auto own_count = static_cast<int>(batch.CountOf(own));
  const int position = static_cast<int>(tile) * kWarpSize + lane;
  // Lanes beyond the part's end go with its last entry and write nothing.
  const int64_t* const own_slots = batch.slots[own];
  const int64_t slot = own_slots[min(position, own_count - 1)];
  // All that write it write the same.
  if (position > 0 && own_slots[min(position, own_count) - 1] > slot) {
    *unordered = 1;
  }

  // Slots of earlier parts go before equal ones.
  const int64_t first_slot = __shfl_sync(kAllLanes, slot, 0);
  const int64_t last_slot = __shfl_sync(kAllLanes, slot, kWarpSize - 1);
  const int searched = lane % kMostMerged;
  int bound = 0;
  if (searched < batch.part_count && searched != own) {
    bound = CountBelow(batch.slots[searched],
                       (lane < kMostMerged ? first_slot : last_slot) +
                           (searched < own ? 1 : 0),
                       0, static_cast<int>(batch.CountOf(searched)));
  }
  int64_t place = position;
  for (int part = 0; part < batch.part_count; ++part) {
    const int low = __shfl_sync(kAllLanes, bound, part);
    const int high = __shfl_sync(kAllLanes, bound, kMostMerged + part);
    if (part == own) continue;
    place +=
        CountBelow(batch.slots[part], slot + (part < own ? 1 : 0), low, high);
  }
  if (position >= own_count) return;
  slots[place] = slot;
  rows[place] = batch.rows[own] +
                static_cast<uint64_t>(position * batch.row_stride_bytes);
}

__global__ void __launch_bounds__(kThreads)
    CheckIncreasingKernel(const int64_t* __restrict__ slots, int64_t count,
                          int32_t* unordered) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  bool bad = false;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i + 1 < count;
       i += stride) {
    bad |= slots[i] >= slots[i + 1];
  }
  if (bad) *unordered = 1;  // All that write it write the same.
}

__global__ void __launch_bounds__(kThreads)
    CombineBitsKernel(const int64_t* __restrict__ slots, int64_t count,
                      unsigned long long* bits) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  unsigned long long combined = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += stride) {
    combined |= static_cast<unsigned long long>(slots[i]);
  }
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    combined |= __shfl_xor_sync(kAllLanes, combined, offset);
  }
  if (threadIdx.x % kWarpSize == 0) atomicOr(bits, combined);
}

cudaError_t Sort(void* scratch, size_t& scratch_bytes,
                 cub::DoubleBuffer<uint64_t>& keys,
                 cub::DoubleBuffer<uint64_t>& values, int64_t count,
                 int slot_bits, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, values,
                                         count, 0, slot_bits, stream);
}

// The parts that have rows, as far as they fit.
PartBatch BatchOf(std::span<const GradientPart> parts,
                  int64_t row_stride_bytes) {
  PartBatch batch;
  batch.row_stride_bytes = row_stride_bytes;
  for (const GradientPart& part : parts) {
    if (part.row_count > 0 && !batch.Add(part)) break;
  }
  return batch;
}

}  // namespace

EntryScratch EntryScratch::Cut(ScratchCutter& cutter, int64_t count) {
  EntryScratch scratch;
  for (int i = 0; i < 2; ++i) {
    scratch.slots[i] = cutter.Take<int64_t>(count);
    scratch.rows[i] = cutter.Take<uint64_t>(count);
  }
  size_t bytes = 0;
  cub::DoubleBuffer<uint64_t> none(nullptr, nullptr);
  (void)Sort(nullptr, bytes, none, none, count, 63, nullptr);
  scratch.sort_bytes = static_cast<int64_t>(bytes);
  scratch.sort = cutter.Take<char>(scratch.sort_bytes);
  return scratch;
}

cudaError_t LaunchSortEntries(std::span<const GradientPart> parts,
                              int64_t row_stride_bytes, int slot_bits,
                              const EntryScratch& scratch, Entries& entries,
                              cudaStream_t stream) {
  entries = {scratch.slots[0], scratch.rows[0], 0};
  size_t next = 0;
  while (next < parts.size()) {
    PartBatch batch;
    batch.row_stride_bytes = row_stride_bytes;
    for (; next < parts.size(); ++next) {
      if (parts[next].row_count > 0 && !batch.Add(parts[next])) break;
    }
    int64_t* const slots = scratch.slots[0] + entries.count;
    uint64_t* const rows = scratch.rows[0] + entries.count;
    const bool all = entries.count == 0 && next == parts.size();
    entries.count += batch.entry_count;
    if (all && batch.entry_count <= kMostRanked && slot_bits <= 32) {
      RankSortKernel<<<BlocksFor(batch.entry_count, kRanked), kRankThreads, 0,
                       stream>>>(batch, slots, rows);
      return cudaGetLastError();
    }
    GatherEntriesKernel<<<BlocksFor(batch.entry_count, kThreads), kThreads, 0,
                          stream>>>(batch, slots, rows);
    if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      return error;
    }
  }
  cub::DoubleBuffer<uint64_t> keys(
      reinterpret_cast<uint64_t*>(scratch.slots[0]),
      reinterpret_cast<uint64_t*>(scratch.slots[1]));
  cub::DoubleBuffer<uint64_t> values(scratch.rows[0], scratch.rows[1]);
  size_t bytes = static_cast<size_t>(scratch.sort_bytes);
  const cudaError_t error = Sort(scratch.sort, bytes, keys, values,
                                 entries.count, std::max(slot_bits, 1), stream);
  entries.slots = reinterpret_cast<const int64_t*>(keys.Current());
  entries.rows = values.Current();
  return error;
}

bool MayMergeParts(std::span<const GradientPart> parts) {
  const PartBatch batch = BatchOf(parts, 0);
  return batch.part_count > 1 && batch.part_count <= kMostMerged &&
         batch.entry_count > kMostRanked && batch.entry_count < INT32_MAX;
}

cudaError_t LaunchMergeParts(std::span<const GradientPart> parts,
                             int64_t row_stride_bytes,
                             const EntryScratch& scratch, Entries& entries,
                             int32_t* unordered, cudaStream_t stream) {
  const PartBatch batch = BatchOf(parts, row_stride_bytes);
  // A part's last warp may be short of entries.
  const int64_t warps = batch.entry_count / kWarpSize + batch.part_count;
  MergePartsKernel<<<BlocksFor(warps, kWarps), kThreads, 0, stream>>>(
      batch, scratch.slots[0], scratch.rows[0], unordered);
  entries = {scratch.slots[0], scratch.rows[0], batch.entry_count};
  return cudaGetLastError();
}

cudaError_t LaunchCheckIncreasing(const int64_t* slots, int64_t count,
                                  int32_t* unordered, cudaStream_t stream) {
  CheckIncreasingKernel<<<FewBlocksFor(count, kThreads), kThreads, 0, stream>>>(
      slots, count, unordered);
  return cudaGetLastError();
}

cudaError_t LaunchCombineBits(const int64_t* slots, int64_t count,
                              unsigned long long* bits, cudaStream_t stream) {
  CombineBitsKernel<<<FewBlocksFor(count, kThreads), kThreads, 0, stream>>>(
      slots, count, bits);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
