#include "kernels/cuda/launch.h"
#include "kernels/cuda/ngram_row_ids.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    NgramRowIdsKernel(const int32_t* __restrict__ tokens, int64_t count,
                      NgramLayout layout, int64_t* __restrict__ row_ids) {
  const int64_t t = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= count) return;
  row_ids[t] = BigramRowId(tokens, t, layout);
  row_ids[count + t] = TrigramRowId(tokens, t, layout);
}

__global__ void __launch_bounds__(kThreads)
    FindSlotsKernel(const int64_t* __restrict__ want, int64_t want_count,
                    const int64_t* __restrict__ row_ids, int64_t count,
                    int64_t* __restrict__ slots,
                    unsigned long long* __restrict__ inverse_of_first) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t row_id = row_ids[i];
  int64_t first = 0;
  int64_t end = want_count;
  while (first < end) {
    const int64_t middle = first + (end - first) / 2;
    if (want[middle] < row_id) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  slots[i] = first;
  if (first < want_count && want[first] == row_id) return;
  atomicMax(inverse_of_first, ~static_cast<unsigned long long>(i));
}

}  // namespace

cudaError_t LaunchNgramRowIds(std::span<const int32_t> tokens,
                              int64_t table_row_count,
                              std::span<int64_t> row_ids, cudaStream_t stream) {
  if (tokens.empty()) return cudaSuccess;
  const auto count = static_cast<int64_t>(tokens.size());
  NgramRowIdsKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
      tokens.data(), count, NgramLayout::Of(table_row_count), row_ids.data());
  return cudaGetLastError();
}

cudaError_t LaunchFindSlots(std::span<const int64_t> want,
                            std::span<const int64_t> row_ids,
                            std::span<int64_t> slots,
                            unsigned long long* inverse_of_first,
                            cudaStream_t stream) {
  if (row_ids.empty()) return cudaSuccess;
  const auto count = static_cast<int64_t>(row_ids.size());
  FindSlotsKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
      want.data(), static_cast<int64_t>(want.size()), row_ids.data(), count,
      slots.data(), inverse_of_first);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
