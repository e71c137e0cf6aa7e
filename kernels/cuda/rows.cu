#include <bit>

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.h"
#include "kernels/hash.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kPacksAtOnce = 4;  // Of one lane, asked for before any is stored.

// `kLanes` lanes copy a row, so a warp as many rows as fit.
template <typename Pack, int kLanes>
__global__ void __launch_bounds__(kThreads)
    GatherRowsKernel(const Pack* __restrict__ table,
                     const int64_t* __restrict__ slots,
                     const int64_t* __restrict__ positions, int64_t count,
                     int64_t packs_per_row, Pack* __restrict__ out) {
  const int lane = threadIdx.x % kLanes;
  const int64_t row = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / kLanes;
  if (row >= count) return;
  const int64_t slot = slots == nullptr ? row : slots[row];
  const int64_t position = positions == nullptr ? row : positions[row];
  const Pack* const from = table + slot * packs_per_row;
  Pack* const to = out + position * packs_per_row;
  for (int64_t first = lane; first < packs_per_row;
       first += kPacksAtOnce * kLanes) {
    Pack packs[kPacksAtOnce];
#pragma unroll
    for (int i = 0; i < kPacksAtOnce; ++i) {
      const int64_t at = first + i * kLanes;
      if (at < packs_per_row) packs[i] = __ldcs(from + at);
    }
#pragma unroll
    for (int i = 0; i < kPacksAtOnce; ++i) {
      const int64_t at = first + i * kLanes;
      if (at < packs_per_row) __stcs(to + at, packs[i]);
    }
  }
}

template <typename Pack>
cudaError_t Gather(const RowTable& table, const int64_t* slots,
                   const int64_t* positions, int64_t count, void* out,
                   cudaStream_t stream) {
  const int64_t packs = table.row_bytes() / static_cast<int64_t>(sizeof(Pack));
  const auto launch = [&](auto kernel, int lanes) {
    kernel<<<BlocksFor(count, kThreads / lanes), kThreads, 0, stream>>>(
        static_cast<const Pack*>(table.weights), slots, positions, count, packs,
        static_cast<Pack*>(out));
    return cudaGetLastError();
  };
  if (packs <= 2) return launch(GatherRowsKernel<Pack, 2>, 2);
  if (packs <= 8) return launch(GatherRowsKernel<Pack, 8>, 8);
  return launch(GatherRowsKernel<Pack, kWarpSize>, kWarpSize);
}

template <typename Weight>
__global__ void __launch_bounds__(kThreads)
    FillUniformKernel(Weight* weights, int64_t element_count, int64_t dim,
                      int64_t first_row_id, uint64_t seed, float bound) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < element_count; i += stride) {
    const int64_t row = i / dim;
    weights[i] = Narrow<Weight>(
        UniformInitial(seed, bound, first_row_id + row, i - row * dim));
  }
}

__global__ void __launch_bounds__(kThreads)
    BringCurrentKernel(RowState* states, const float* __restrict__ beta2,
                       const float* __restrict__ suffix_min,
                       int64_t event_count, const int64_t* __restrict__ slots,
                       int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  RowState& stored = states[slots[i]];
  const RowState state = stored;
  stored = {ReplaySecondMoment(state.second_moment, beta2, suffix_min,
                               int64_t{state.last_event} + 1, event_count),
            static_cast<int32_t>(event_count)};
}

}  // namespace

cudaError_t LaunchGatherRows(const RowTable& table, const int64_t* slots,
                             int64_t count, void* out, cudaStream_t stream,
                             const int64_t* positions) {
  if (count == 0) return cudaSuccess;
  const uint64_t all = reinterpret_cast<uint64_t>(table.weights) |
                       reinterpret_cast<uint64_t>(out) |
                       static_cast<uint64_t>(table.row_bytes());
  const auto gather = [&]<typename Pack>(Pack /*of this type*/) {
    return Gather<Pack>(table, slots, positions, count, out, stream);
  };
  if (all % 16 == 0) return gather(uint4());
  if (all % 8 == 0) return gather(uint2());
  if (all % 4 == 0) return gather(uint32_t());
  return gather(uint16_t());
}

cudaError_t LaunchFillUniform(const RowTable& table, uint64_t seed, float bound,
                              cudaStream_t stream) {
  const int64_t count = table.row_count * table.dim;
  if (count == 0) return cudaSuccess;
  const unsigned blocks = BlocksFor(count, int64_t{16} * kThreads);
  if (table.dtype == DType::kFp32) {
    FillUniformKernel<<<blocks, kThreads, 0, stream>>>(
        static_cast<float*>(table.weights), count, table.dim,
        table.first_row_id, seed, bound);
  } else {
    FillUniformKernel<<<blocks, kThreads, 0, stream>>>(
        static_cast<uint16_t*>(table.weights), count, table.dim,
        table.first_row_id, seed, bound);
  }
  return cudaGetLastError();
}

cudaError_t LaunchBringCurrent(const RowTable& table, const float* beta2,
                               const float* suffix_min, int64_t event_count,
                               const int64_t* slots, int64_t count,
                               cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  BringCurrentKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
      table.states, beta2, suffix_min, event_count, slots, count);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
