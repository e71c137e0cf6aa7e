#include <algorithm>

#include "kernels/cuda/adamw.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kMostThreads = 512;
constexpr int kColumns = 8;  // Of a thread, `blockDim.x` apart.

// One thread's share of a row, new values in registers.
template <typename Weight, typename Main>
struct Share {
  AdamWElement elements[kColumns];

  // Forms the new values of columns `first`, `first + blockDim.x`, ...; says
  // whether they and the gradients are finite.
  __device__ bool Form(const DenseTable& table, const AdamWFactors& factors,
                       int64_t row, int64_t first) {
    const auto* weights = static_cast<const Weight*>(table.weights) + row;
    const auto* main_grad = static_cast<const Main*>(table.main_grad) + row;
    Main gradients[kColumns];
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int64_t j = first + k * blockDim.x;
      if (j >= table.dim) break;
      gradients[k] = main_grad[j];
      elements[k] = {
          table.master == nullptr ? Widen(weights[j]) : table.master[row + j],
          table.first_moment[row + j], table.second_moment[row + j]};
    }
    bool finite = true;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      if (first + k * blockDim.x >= table.dim) break;
      const float g = Widen(gradients[k]);
      elements[k] = UpdateAdamW(elements[k], g, factors);
      // A master that is not finite has a weight that is not.
      finite = finite && IsFinite(g) &&
               IsFinite(Widen(Narrow<Weight>(elements[k].weight))) &&
               IsFinite(elements[k].first_moment) &&
               IsFinite(elements[k].second_moment);
    }
    return finite;
  }

  __device__ void Store(const DenseTable& table, int64_t row,
                        int64_t first) const {
    auto* weights = static_cast<Weight*>(table.weights) + row;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int64_t j = first + k * blockDim.x;
      if (j >= table.dim) break;
      weights[j] = Narrow<Weight>(elements[k].weight);
      if (table.master != nullptr) {
        table.master[row + j] = Canonical(elements[k].weight);
      }
      table.first_moment[row + j] = Canonical(elements[k].first_moment);
      table.second_moment[row + j] = Canonical(elements[k].second_moment);
    }
  }
};

// One thread a row: a bias and its moments.
struct BiasShare {
  AdamWElement element;

  __device__ bool Form(const DenseTable& table, const AdamWFactors& factors,
                       int64_t slot) {
    const float g = table.bias_grad[slot];
    element = UpdateAdamW({table.bias[slot], table.bias_first_moment[slot],
                           table.bias_second_moment[slot]},
                          g, factors);
    return IsFinite(g) && IsFinite(element.weight) &&
           IsFinite(element.first_moment) && IsFinite(element.second_moment);
  }

  __device__ void Store(const DenseTable& table, int64_t slot) const {
    table.bias[slot] = Canonical(element.weight);
    table.bias_first_moment[slot] = Canonical(element.first_moment);
    table.bias_second_moment[slot] = Canonical(element.second_moment);
  }
};

// A block a row. Nothing is stored before all of the row is known.
template <typename Weight, typename Main>
__global__ void __launch_bounds__(kMostThreads)
    AdamWKernel(DenseTable table, AdamWFactors factors, bool keeps_non_finite,
                unsigned long long* untouched_row_count) {
  const int64_t slot = blockIdx.x;
  const int64_t row = slot * table.dim;
  const int64_t step = int64_t{kColumns} * blockDim.x;
  const bool forms_bias = table.bias != nullptr && threadIdx.x == 0;
  Share<Weight, Main> share;
  BiasShare bias;
  bool finite = !forms_bias || bias.Form(table, factors, slot);
  int64_t last = -1;
  for (int64_t first = threadIdx.x; first < table.dim; first += step) {
    finite = share.Form(table, factors, row, first) && finite;
    last = first;
  }
  const bool stores = __syncthreads_and(finite) != 0 || !keeps_non_finite;
  if (!stores && threadIdx.x == 0) atomicAdd(untouched_row_count, 1ULL);

  // Backwards: the registers hold the last share. The others are formed again.
  auto* main_grad = static_cast<Main*>(table.main_grad) + row;
  for (int64_t first = last; first >= 0; first -= step) {
    if (stores) {
      if (first < last) share.Form(table, factors, row, first);
      share.Store(table, row, first);
    }
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int64_t j = first + k * blockDim.x;
      if (j < table.dim) main_grad[j] = Main{};
    }
  }
  if (!forms_bias) return;
  if (stores) bias.Store(table, slot);
  table.bias_grad[slot] = 0.0F;
}

}  // namespace

cudaError_t LaunchAdamW(const DenseTable& table, const AdamWFactors& factors,
                        NonFinitePolicy policy,
                        unsigned long long* untouched_row_count,
                        cudaStream_t stream) {
  if (table.row_count == 0) return cudaSuccess;
  const int64_t threads = (table.dim + kColumns - 1) / kColumns;
  const int64_t warps =
      std::max<int64_t>((threads + kWarpSize - 1) / kWarpSize, 1);
  const auto block =
      static_cast<unsigned>(std::min<int64_t>(warps * kWarpSize, kMostThreads));
  WithDenseElement(table.dtype, [&]<typename Weight>() {
    WithDenseElement(table.main_grad_dtype, [&]<typename Main>() {
      AdamWKernel<Weight, Main>
          <<<static_cast<unsigned>(table.row_count), block, 0, stream>>>(
              table, factors, policy != NonFinitePolicy::kPropagate,
              untouched_row_count);
    });
  });
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
