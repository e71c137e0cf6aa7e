#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/square_sum.cuh"
#include "kernels/cuda/weight_update.cuh"

namespace rowhouse::kernels::cuda {
namespace {

__device__ void Count(unsigned long long& counter) { atomicAdd(&counter, 1ULL); }

// The second moment of a row as this event leaves it. False, with the count
// of why, where the policy asks for finite values and one is not.
struct Moment {
  bool applies;
  float v;
};

__device__ Moment NextMoment(const RowAdamLaunch& e, float v,
                             int32_t last_event, float sum_of_squares,
                             bool counts) {
  const bool any_value = e.policy == NonFinitePolicy::kPropagate;
  const float mean_square = sum_of_squares / static_cast<float>(e.table.dim);
  // A sum that is not finite has a mean square that is not finite.
  if (!any_value && !IsFinite(mean_square)) {
    if (counts) Count(e.counts->bad_mean_squares);
    return {false, v};
  }
  const float replayed = ReplaySecondMoment(
      v, e.beta2, e.suffix_min, int64_t{last_event} + 1, e.event_count);
  const float next =
      Canonical(UpdateSecondMoment(replayed, mean_square, e.factors));
  if (!any_value && !IsFinite(next)) {
    if (counts) Count(e.counts->bad_second_moments);
    return {false, v};
  }
  return {true, next};
}

__device__ void StoreMoment(const RowAdamLaunch& e, int64_t slot, float v) {
  e.table.second_moment[slot] = v;
  e.table.last_event[slot] = static_cast<int32_t>(e.event_count + 1);
}

// The merged gradient of the run at `first`: the lane's columns.
template <typename Gradient, bool kVector, int kGroups, bool kSingle>
__device__ LaneRow<kGroups> MergedRow(const RowAdamLaunch& e, int64_t first,
                                      int length, int64_t column) {
  const int64_t dim = e.table.dim;
  if constexpr (kSingle) {
    const auto* row = static_cast<const Gradient*>(e.part_rows) + first * dim;
    LaneRow<kGroups> merged;
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
      const Columns<Gradient> entry =
          LoadColumns<kVector>(row, column + k * kGroupColumns, dim);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        merged.x[k][c] = 0.0F + Widen(entry.x[c]);
      }
    }
    return merged;
  } else {
    return length == kLongRun
               ? LoadLongRun<kGroups>(e.long_runs, first, column, dim)
               : SumShortRun<Gradient, kVector, kGroups>(e.entries, first,
                                                         length, column, dim);
  }
}

// Every element by `UpdateWeight`, whatever the values.
template <typename Weight, int kGroups>
__device__ bool UpdatePlainly(const RowAdamLaunch& e,
                              const Columns<Weight> (&p)[kGroups],
                              const LaneRow<kGroups>& g, float denominator,
                              int64_t column, Columns<Weight> (&to)[kGroups]) {
  bool finite = true;
  for (int k = 0; k < kGroups; ++k) {
    for (int c = 0; c < kLaneColumns; ++c) {
      to[k].x[c] = Narrow<Weight>(UpdateWeight(Widen(p[k].x[c]), g.x[k][c],
                                               denominator, e.factors));
      if (column + k * kGroupColumns + c < e.table.dim) {
        finite &= IsFiniteElement(to[k].x[c]);
      }
    }
  }
  return finite;
}

// Blocks to fit on a multiprocessor: registers of bf16 rows up to 768 wide
// allow more than the compiler would choose.
template <int kGroups, bool kSingle, typename Weight, typename Gradient>
constexpr int kBlocksAtOnce =
    sizeof(Weight) + sizeof(Gradient) > 4 || kGroups > 3 ? 1
    : kSingle                                            ? 3
                                                         : 2;

// A warp takes the run, if one begins at its entry.
template <typename Weight, typename Gradient, bool kVector, int kGroups,
          bool kSingle>
__global__ void __launch_bounds__(
    kThreads, kBlocksAtOnce<kGroups, kSingle, Weight, Gradient>)
    RowAdamKernel(const __grid_constant__ RowAdamLaunch e) {
  const int lane = threadIdx.x % kWarpSize;
  const int64_t first =
      int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (first >= e.entries.count) return;
  int length = 1;
  if constexpr (kSingle) {
    if (e.counts->unordered != 0) return;
  } else {
    length = RunLength(e.entries, first, lane);
    if (length == 0) return;
  }
  // Everything the row needs is asked for before any of it is used.
  const int64_t dim = e.table.dim;
  const int64_t column = lane * kLaneColumns;
  const int64_t slot = e.entries.slots[first];
  Weight* const row = static_cast<Weight*>(e.table.weights) + slot * dim;
  const float v = e.table.second_moment[slot];
  const int32_t last_event = e.table.last_event[slot];
  Columns<Weight> p[kGroups];
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    p[k] = LoadColumns<kVector>(row, column + k * kGroupColumns, dim);
  }
  const LaneRow<kGroups> g =
      MergedRow<Gradient, kVector, kGroups, kSingle>(e, first, length, column);

  const float squares = SumOfSquares(g, lane);
  const Moment moment = NextMoment(e, v, last_event, squares, lane == 0);
  if (!moment.applies) return;
  const float denominator = RowAdamDenominator(moment.v, e.factors);
  WeightUpdate update(e.factors, denominator, squares);
  Columns<Weight> next[kGroups];
  bool finite = true;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    float x[kLaneColumns];
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      x[c] = update(Widen(p[k].x[c]), g.x[k][c]);
    }
    finite &= NarrowColumns(x, next[k]);
  }
  if (!__all_sync(kAllLanes, finite && update.IsExact())) {
    finite = __all_sync(kAllLanes,
                        UpdatePlainly(e, p, g, denominator, column, next));
    if (!finite && e.policy != NonFinitePolicy::kPropagate) {
      if (lane == 0) Count(e.counts->bad_weights);
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    StoreColumns<kVector>(next[k], row, column + k * kGroupColumns, dim);
  }
  if (lane == 0) StoreMoment(e, slot, moment.v);
}

// ------------------------------------------------------------- wide rows --

template <typename Gradient, bool kSingle>
__device__ float MergedElement(const RowAdamLaunch& e, int64_t first,
                               int length, int64_t column) {
  if constexpr (kSingle) {
    const auto* rows = static_cast<const Gradient*>(e.part_rows);
    return 0.0F + Widen(rows[first * e.table.dim + column]);
  }
  if (length == kLongRun) {
    return e.long_runs.sums[first / kLongRun * e.table.dim + column];
  }
  RunSum sum;
  for (int i = 0; i < length; ++i) {
    sum.Add(Widen(
        reinterpret_cast<const Gradient*>(e.entries.rows[first + i])[column]));
  }
  return sum.Result();
}

// Folds the partial sums of all threads by halves; all get the sum.
__device__ float FoldBlock(float partial) {
  static_assert(kThreads == kSquarePartials);
  __shared__ float partials[kThreads];
  partials[threadIdx.x] = partial;
  __syncthreads();
  for (unsigned offset = kThreads / 2; offset > 0; offset /= 2) {
    if (threadIdx.x < offset) {
      partials[threadIdx.x] =
          partials[threadIdx.x] + partials[threadIdx.x + offset];
    }
    __syncthreads();
  }
  const float sum = partials[0];
  __syncthreads();
  return sum;
}

// A block takes a run; its merged gradient, and then the new weights, lie in
// the block's own part of `wide_rows`, where thread `t` has columns `256k + t`.
template <typename Weight, typename Gradient, bool kSingle>
__global__ void __launch_bounds__(kThreads)
    WideRowAdamKernel(const __grid_constant__ RowAdamLaunch e) {
  if constexpr (kSingle) {
    if (e.counts->unordered != 0) return;
  }
  const int64_t dim = e.table.dim;
  float* const g = e.wide_rows + blockIdx.x * dim;
  for (int64_t first = blockIdx.x; first < e.entries.count;
       first += gridDim.x) {
    const int length =
        kSingle ? 1 : RunLength(e.entries, first, threadIdx.x % kWarpSize);
    if (length == 0) continue;
    const int64_t slot = e.entries.slots[first];
    Weight* const row = static_cast<Weight*>(e.table.weights) + slot * dim;
    float squares = 0.0F;
    for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
      g[j] = MergedElement<Gradient, kSingle>(e, first, length, j);
      squares = squares + g[j] * g[j];
    }
    const Moment moment =
        NextMoment(e, e.table.second_moment[slot], e.table.last_event[slot],
                   FoldBlock(squares), threadIdx.x == 0);
    if (!moment.applies) continue;
    const float denominator = RowAdamDenominator(moment.v, e.factors);
    bool finite = true;
    for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
      const Weight next = Narrow<Weight>(
          UpdateWeight(Widen(row[j]), g[j], denominator, e.factors));
      finite &= IsFiniteElement(next);
      g[j] = Widen(next);
    }
    // All have read the old moment, too.
    if (!__syncthreads_and(finite) && e.policy != NonFinitePolicy::kPropagate) {
      if (threadIdx.x == 0) Count(e.counts->bad_weights);
      continue;
    }
    for (int64_t j = threadIdx.x; j < dim; j += kThreads) {
      row[j] = Narrow<Weight>(g[j]);
    }
    if (threadIdx.x == 0) StoreMoment(e, slot, moment.v);
  }
}

int64_t WideBlocks(int64_t dim) {
  constexpr int64_t kMostFloats = int64_t{1} << 26;
  return std::clamp<int64_t>(kMostFloats / dim, 64, 1056);
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
    case 4:
      return RowAdamKernel<Weight, Gradient, kVector, 4, kSingle>;
  }
  return WideRowAdamKernel<Weight, Gradient, kSingle>;
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

int64_t RowAdamScratchFloats(int64_t dim) {
  return dim <= kRegisterColumns ? 0 : WideBlocks(dim) * dim;
}

cudaError_t LaunchRowAdam(const RowAdamLaunch& launch, cudaStream_t stream) {
  const bool wide_weights = launch.table.dtype == DType::kFp32;
  const bool wide_gradient = launch.gradient_dtype == DType::kFp32;
  const Kernel kernel =
      wide_weights ? (wide_gradient ? KernelFor<float, float>(launch)
                                    : KernelFor<float, uint16_t>(launch))
                   : (wide_gradient ? KernelFor<uint16_t, float>(launch)
                                    : KernelFor<uint16_t, uint16_t>(launch));
  const int64_t dim = launch.table.dim;
  const unsigned blocks =
      dim <= kRegisterColumns
          ? BlocksFor(launch.entries.count, kWarps)
          : static_cast<unsigned>(
                std::min(launch.entries.count, WideBlocks(dim)));
  kernel<<<blocks, kThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
