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

}  // namespace rowhouse::kernels::cuda
