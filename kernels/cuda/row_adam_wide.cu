#include <algorithm>

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/row_moment.cuh"
#include "kernels/cuda/run_sum.cuh"

namespace rowhouse::kernels::cuda {
namespace {

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
  if (e.counts->runs.unordered != 0) return;
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
    const Moment moment = NextMoment(e, e.table.states[slot],
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

template <typename Weight, typename Gradient>
auto KernelFor(bool single_part) {
  return single_part ? WideRowAdamKernel<Weight, Gradient, true>
                     : WideRowAdamKernel<Weight, Gradient, false>;
}

}  // namespace

int64_t RowAdamScratchFloats(int64_t dim) {
  return dim <= kRegisterColumns ? 0 : WideBlocks(dim) * dim;
}

cudaError_t LaunchWideRowAdam(const RowAdamLaunch& launch,
                              cudaStream_t stream) {
  const bool single = launch.single_part;
  const bool wide_gradient = launch.gradient_dtype == DType::kFp32;
  const auto kernel =
      launch.table.dtype == DType::kFp32
          ? (wide_gradient ? KernelFor<float, float>(single)
                           : KernelFor<float, uint16_t>(single))
          : (wide_gradient ? KernelFor<uint16_t, float>(single)
                           : KernelFor<uint16_t, uint16_t>(single));
  const int64_t blocks =
      std::min(launch.entries.count, WideBlocks(launch.table.dim));
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
