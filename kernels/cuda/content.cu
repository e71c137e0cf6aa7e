#include <bit>

#include "kernels/arithmetic.h"
#include "kernels/cuda/content.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/words.cuh"
#include "kernels/finite_check.h"

namespace rowhouse::kernels::cuda {
namespace {

// A warp takes a row at a time.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    ContentKernel(const std::byte* __restrict__ rows, int64_t row_count,
                  int64_t dim, int64_t element_bytes, FiniteCheck check,
                  int64_t first_position, RunContent* content) {
  __shared__ ContentSum kept[WordSecrets::kKept];
  const int64_t row_bytes = dim * element_bytes;
  const WordSecrets secrets(kept, (row_bytes + kWordBytes - 1) / kWordBytes);
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  ContentSum sum;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
       i < row_count; i += stride) {
    const ContentSum words = RowWords<kWhole>(
        rows + i * row_bytes, row_bytes, secrets,
        [&](int64_t word, uint64_t value) {
          const uint64_t carries = check.Carries(value);
          if (carries == 0) return;
          const int64_t column = word * (kWordBytes / element_bytes) +
                                 (__ffsll(static_cast<int64_t>(carries)) - 1) /
                                     (8 * element_bytes);
          atomicMax(&content->inverse_of_first_bad,
                    ~static_cast<unsigned long long>(i * dim + column));
        });
    sum += RowContent(first_position + i, words);
  }
  if (threadIdx.x % kWarpSize == 0) {
    AtomicAdd(content->content.low, sum.low);
    AtomicAdd(content->content.high, sum.high);
  }
}

template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    DigestKernel(RowTable table, int64_t row_bytes,
                 const float* __restrict__ beta2,
                 const float* __restrict__ suffix_min, int64_t event_count,
                 uint64_t* sum) {
  __shared__ ContentSum kept[WordSecrets::kKept];
  const WordSecrets secrets(kept, (row_bytes + kWordBytes - 1) / kWordBytes);
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  const auto* const weights = static_cast<const std::byte*>(table.weights);
  uint64_t digest = 0;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
       i < table.row_count; i += stride) {
    const RowState state = table.states[i];
    const float v =
        ReplaySecondMoment(state.second_moment, beta2, suffix_min,
                           int64_t{state.last_event} + 1, event_count);
    const ContentSum words = RowWords<kWhole>(
        weights + i * row_bytes, row_bytes, secrets, [](int64_t, uint64_t) {});
    digest +=
        RowDigest(table.first_row_id + i, words, std::bit_cast<uint32_t>(v));
  }
  if (threadIdx.x % kWarpSize == 0) AtomicAdd(*sum, digest);
}

}  // namespace

cudaError_t LaunchContent(const void* rows, int64_t row_count, int64_t dim,
                          DType dtype, int64_t first_position,
                          RunContent* content, cudaStream_t stream) {
  const int64_t element_bytes = SizeOf(dtype);
  const auto kernel = AreWholeWords(rows, dim * element_bytes)
                          ? ContentKernel<true>
                          : ContentKernel<false>;
  kernel<<<FewBlocksFor(row_count, kWarps), kThreads, 0, stream>>>(
      static_cast<const std::byte*>(rows), row_count, dim, element_bytes,
      FiniteCheck::Of(dtype), first_position, content);
  return cudaGetLastError();
}

cudaError_t LaunchDigest(const RowTable& table, const float* beta2,
                         const float* suffix_min, int64_t event_count,
                         uint64_t* sum, cudaStream_t stream) {
  const auto kernel = AreWholeWords(table.weights, table.row_bytes())
                          ? DigestKernel<true>
                          : DigestKernel<false>;
  kernel<<<FewBlocksFor(table.row_count, kWarps), kThreads, 0, stream>>>(
      table, table.row_bytes(), beta2, suffix_min, event_count, sum);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
