#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/row_moment.cuh"
#include "kernels/cuda/square_sum.cuh"
#include "kernels/cuda/weight_update.cuh"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kRowWarps = 2;  // A block of few: what it holds is soon free.
constexpr int kTile = 8;      // Entries whose runs a warp takes.
constexpr int kStages = 2;    // One at work, one on its way.
static_assert(kTile + kLongRun <= 2 * kWarpSize);

// What comes from memory for one entry and, with a run's last, for its row;
// each lane writes and reads its own columns alone.
template <typename Weight, typename Gradient, int kGroups>
struct Stage {
  Columns<Gradient> gradient[kGroups][kWarpSize];
  Columns<Weight> weights[kGroups][kWarpSize];
};

// Entries `first .. first + 63`, lane `l` holding `first + l` and `+ 32 + l`:
// those of the tile, and where its last run, if it is not long, ends.
struct Tile {
  int64_t first;
  int64_t slots[2];
  uint64_t rows[2];
  uint64_t heads;  // Bit `i`: a run begins at entry `i`, or there is no entry.
  RowState state;  // Of entry `l`'s row, for the first kTile lanes.

  __device__ int64_t SlotOf(int i) const {
    return __shfl_sync(kAllLanes, i < kWarpSize ? slots[0] : slots[1],
                       i % kWarpSize);
  }
  __device__ uint64_t RowOf(int i) const {
    return __shfl_sync(kAllLanes, i < kWarpSize ? rows[0] : rows[1],
                       i % kWarpSize);
  }
  // Of a run's last entry, whose first is in the tile.
  __device__ RowState StateOf(int i) const {
    const uint64_t until = i < 63 ? (uint64_t{2} << i) - 1 : ~uint64_t{0};
    const int head = 63 - __clzll(static_cast<int64_t>(heads & until));
    return {__shfl_sync(kAllLanes, state.second_moment, head),
            __shfl_sync(kAllLanes, state.last_event, head)};
  }
  __device__ bool IsHead(int i) const { return (heads >> i & 1) != 0; }
  // Of the run that begins at `i`: it has at least kLongRun entries.
  __device__ bool IsLong(int i) const {
    return IsHead(i) && (heads >> i & 0xffffffffU) == 1;
  }
};

template <bool kSingle>
__device__ Tile LoadTile(const RowAdamLaunch& e, int64_t first, int lane) {
  Tile tile = {first, {-1, -1}, {0, 0}, ~uint64_t{0}, {}};
  const int64_t left = e.entries.count - first;
  const int64_t* const slots = e.entries.slots + first;
  if constexpr (kSingle) {
    if (lane < left) tile.slots[0] = slots[lane];
  } else {
    const uint64_t* const rows = e.entries.rows + first;
    for (int half = 0; half < 2; ++half) {
      const int at = half * kWarpSize + lane;
      if (at >= left) continue;
      tile.slots[half] = slots[at];
      tile.rows[half] = rows[at];
    }
    int64_t before[2];
    for (int half = 0; half < 2; ++half) {
      before[half] = __shfl_up_sync(kAllLanes, tile.slots[half], 1);
    }
    const int64_t middle = __shfl_sync(kAllLanes, tile.slots[0], kWarpSize - 1);
    if (lane == 0) {
      before[0] = first > 0 ? slots[-1] : -1;
      before[1] = middle;
    }
    uint64_t heads = 0;
    for (int half = 0; half < 2; ++half) {
      const bool head =
          half * kWarpSize + lane >= left || tile.slots[half] != before[half];
      heads |= uint64_t{__ballot_sync(kAllLanes, head)} << (half * kWarpSize);
    }
    tile.heads = heads;
  }
  if (lane < kTile && lane < left && tile.IsHead(lane)) {
    tile.state = e.table.states[tile.slots[0]];
  }
  return tile;
}

__device__ void CopyAsync(void* to, const void* from, bool some) {
  // With 0 bytes to read it writes zeros.
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(some ? 16 : 0)
               : "memory");
}

// A row's columns of this lane, on their way to `to`.
template <bool kVector, typename T, int kGroups>
__device__ void FetchRow(const T* row, int dim, int lane,
                         Columns<T> (&to)[kGroups][kWarpSize]) {
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    const int column = k * kGroupColumns + lane * kLaneColumns;
    if constexpr (kVector) {
      constexpr int kPackElements = 16 / sizeof(T);
      const bool some = column < dim;
#pragma unroll
      for (int i = 0; i < kLaneColumns; i += kPackElements) {
        CopyAsync(&to[k][lane].x[i], some ? row + column + i : row, some);
      }
    } else {
      to[k][lane] = LoadColumns<false>(row, column, dim);
    }
  }
}

// The run-sum of a row so far: the lane's columns of the chunk in registers,
// those of the chunks before, which few rows have, in shared memory.
template <int kGroups>
class RunningSum {
 public:
  using Total = Columns<float>[kGroups][kWarpSize];

  __device__ RunningSum(Total& total, int lane) : total_(total), lane_(lane) {}

  template <typename Gradient>
  __device__ void Add(const Columns<Gradient> (&entry)[kGroups][kWarpSize]) {
    if (count_ % kRunChunk != 0) {
      ForEach([&](float& sum, int k, int c) {
        sum = sum + Widen(entry[k][lane_].x[c]);
      });
    } else {
      if (count_ > 0) Fold();
      ForEach([&](float& sum, int k, int c) {
        sum = 0.0F + Widen(entry[k][lane_].x[c]);
      });
    }
    ++count_;
  }

  __device__ void Set(const LaneRow<kGroups>& sum) {
    chunk_ = sum;
    count_ = 1;
  }

  // The sum, of one entry at least; the next `Add` begins another.
  __device__ const LaneRow<kGroups>& Finish() {
    if (count_ > kRunChunk) {
      ForEach(
          [&](float& sum, int k, int c) { sum = total_[k][lane_].x[c] + sum; });
    }
    count_ = 0;
    return chunk_;
  }

 private:
  // A first chunk is the total: +0 adds nothing to a sum from +0.
  __device__ void Fold() {
    const bool first = count_ == kRunChunk;
    ForEach([&](float& sum, int k, int c) {
      float& total = total_[k][lane_].x[c];
      total = first ? sum : total + sum;
    });
  }

  template <typename Visit>
  __device__ void ForEach(Visit visit) {
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) visit(chunk_.x[k][c], k, c);
    }
  }

  Total& total_;
  int lane_;
  int count_ = 0;
  LaneRow<kGroups> chunk_;
};

// Every element by `UpdateWeight`, whatever the values.
template <typename Weight, int kGroups>
__device__ bool UpdatePlainly(const RowAdamLaunch& e,
                              const Columns<Weight> (&p)[kGroups][kWarpSize],
                              const LaneRow<kGroups>& g, float denominator,
                              int lane, Columns<Weight> (&to)[kGroups]) {
  bool finite = true;
  for (int k = 0; k < kGroups; ++k) {
    for (int c = 0; c < kLaneColumns; ++c) {
      to[k].x[c] = Narrow<Weight>(UpdateWeight(
          Widen(p[k][lane].x[c]), g.x[k][c], denominator, e.factors));
      const int64_t column = k * kGroupColumns + lane * kLaneColumns + c;
      if (column < e.table.dim) finite &= IsFiniteElement(to[k].x[c]);
    }
  }
  return finite;
}

// The event of row `slot`, from its merged gradient on.
template <bool kVector, typename Weight, int kGroups>
__device__ void UpdateRow(const RowAdamLaunch& e, int64_t slot,
                          const RowState& state,
                          const Columns<Weight> (&p)[kGroups][kWarpSize],
                          const LaneRow<kGroups>& g, int lane) {
  const float squares = SumOfSquares(g, lane);
  const Moment moment = NextMoment(e, state, squares, lane == 0);
  if (!moment.applies) return;
  const float denominator = RowAdamDenominator(moment.v, e.factors);
  WeightUpdate update(e.factors, denominator, squares);
  Columns<Weight> next[kGroups];
  bool finite = true;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    const Columns<Weight> old = p[k][lane];
    float x[kLaneColumns];
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      x[c] = update(Widen(old.x[c]), g.x[k][c]);
    }
    finite &= NarrowColumns(x, next[k]);
  }
  if (!__all_sync(kAllLanes, finite && update.IsExact())) {
    finite =
        __all_sync(kAllLanes, UpdatePlainly(e, p, g, denominator, lane, next));
    if (!finite && e.policy != NonFinitePolicy::kPropagate) {
      if (lane == 0) Count(e.counts->bad_weights);
      return;
    }
  }
  Weight* const row =
      static_cast<Weight*>(e.table.weights) + slot * e.table.dim;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    StoreColumns<kVector>(next[k], row, k * kGroupColumns + lane * kLaneColumns,
                          e.table.dim);
  }
  if (lane == 0) StoreMoment(e, slot, moment.v);
}

// Blocks to fit on a multiprocessor, where all is bf16 and no wider than 768:
// as many as need no spills. More of them were slower, for want of L2 cache.
template <typename Weight, typename Gradient, int kGroups>
constexpr bool kIsNarrow = sizeof(Weight) + sizeof(Gradient) == 4 && kGroups <=
                                                                         3;
template <typename Weight, typename Gradient, int kGroups>
constexpr int kBlocksAtOnce = kIsNarrow<Weight, Gradient, kGroups> ? 12 : 1;

// A warp takes the runs that begin in its tile, an entry after the other; the
// next entry, and what its row needs, is on its way meanwhile.
template <typename Weight, typename Gradient, bool kVector, int kGroups,
          bool kSingle>
__global__ void __launch_bounds__(kRowWarps* kWarpSize,
                                  kBlocksAtOnce<Weight, Gradient, kGroups>)
    RowAdamKernel(const __grid_constant__ RowAdamLaunch e) {
  using RowStage = Stage<Weight, Gradient, kGroups>;
  __shared__ RowStage stages[kRowWarps][kStages];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int64_t first = (int64_t{blockIdx.x} * kRowWarps + warp) * kTile;
  if (first >= e.entries.count) return;
  if (e.counts->runs.unordered != 0) return;
  const int64_t dim = e.table.dim;
  const Tile tile = LoadTile<kSingle>(e, first, lane);

  const auto is_last_of_run = [&](int at) {
    return kSingle || tile.IsHead(at + 1) || tile.IsLong(at);
  };
  const auto fetch = [&](int at, RowStage& to) {
    if (kSingle || !tile.IsLong(at)) {
      const auto* const row =
          kSingle
              ? static_cast<const Gradient*>(e.part_rows) + (first + at) * dim
              : reinterpret_cast<const Gradient*>(tile.RowOf(at));
      FetchRow<kVector>(row, static_cast<int>(dim), lane, to.gradient);
    }
    if (is_last_of_run(at)) {
      FetchRow<kVector>(
          static_cast<const Weight*>(e.table.weights) + tile.SlotOf(at) * dim,
          static_cast<int>(dim), lane, to.weights);
    }
  };
  // After entry `at`: the next of the tile's runs, or -1.
  const auto next_of = [&](int at) {
    if constexpr (kSingle) {
      return at + 1 < kTile && first + at + 1 < e.entries.count ? at + 1 : -1;
    } else {
      // A long run reaches beyond the tile.
      if (tile.IsLong(at) || (at + 1 >= kTile && tile.IsHead(at + 1)))
        return -1;
      return first + at + 1 < e.entries.count ? at + 1 : -1;
    }
  };

  int at = kSingle ? 0 : __ffsll(static_cast<int64_t>(tile.heads)) - 1;
  if (at < 0 || at >= kTile || first + at >= e.entries.count) return;
  // A single part has no chunks to keep.
  __shared__
      typename RunningSum<kGroups>::Total totals[kSingle ? 1 : kRowWarps];
  RunningSum<kGroups> sum(totals[kSingle ? 0 : warp], lane);
  RowStage* now = &stages[warp][0];
  RowStage* other = &stages[warp][1];
  fetch(at, *now);
  asm volatile("cp.async.commit_group;" ::: "memory");
  while (at >= 0) {
    const int following = next_of(at);
    if (following >= 0) fetch(following, *other);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    if (!kSingle && tile.IsLong(at)) {
      sum.Set(LoadLongRun<kGroups>(e.long_runs, first + at, lane * kLaneColumns,
                                   dim));
    } else {
      sum.Add(now->gradient);
    }
    if (is_last_of_run(at)) {
      UpdateRow<kVector>(e, tile.SlotOf(at), tile.StateOf(at), now->weights,
                         sum.Finish(), lane);
    }
    at = following;
    RowStage* const free = now;
    now = other;
    other = free;
  }
}

using Kernel = void (*)(RowAdamLaunch);

template <typename Weight, typename Gradient, bool kVector, bool kSingle>
Kernel KernelFor(int64_t dim) {
  switch ((dim + kGroupColumns - 1) / kGroupColumns) {
    case 1:
      return RowAdamKernel<Weight, Gradient, kVector, 1, kSingle>;
    case 2:
      return RowAdamKernel<Weight, Gradient, kVector, 2, kSingle>;
    case 3:
      return RowAdamKernel<Weight, Gradient, kVector, 3, kSingle>;
  }
  return RowAdamKernel<Weight, Gradient, kVector, 4, kSingle>;
}

template <typename Weight, typename Gradient>
Kernel KernelFor(const RowAdamLaunch& e) {
  const int64_t dim = e.table.dim;
  if (e.single_part) {
    return e.vector_rows ? KernelFor<Weight, Gradient, true, true>(dim)
                         : KernelFor<Weight, Gradient, false, true>(dim);
  }
  return e.vector_rows ? KernelFor<Weight, Gradient, true, false>(dim)
                       : KernelFor<Weight, Gradient, false, false>(dim);
}

}  // namespace

cudaError_t LaunchRowAdam(const RowAdamLaunch& launch, cudaStream_t stream) {
  if (launch.table.dim > kRegisterColumns) {
    return LaunchWideRowAdam(launch, stream);
  }
  const bool wide_weights = launch.table.dtype == DType::kFp32;
  const bool wide_gradient = launch.gradient_dtype == DType::kFp32;
  const Kernel kernel =
      wide_weights ? (wide_gradient ? KernelFor<float, float>(launch)
                                    : KernelFor<float, uint16_t>(launch))
                   : (wide_gradient ? KernelFor<uint16_t, float>(launch)
                                    : KernelFor<uint16_t, uint16_t>(launch));
  kernel<<<BlocksFor(launch.entries.count, kRowWarps * kTile),
           kRowWarps * kWarpSize, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
