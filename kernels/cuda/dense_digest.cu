#include <algorithm>
#include <bit>

#include "kernels/cuda/dense_digest.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/words.cuh"
#include "kernels/hash.h"

namespace rowhouse::kernels::cuda {
namespace {

// A warp takes a row at a time; each array is read once. `kWhole`: rows of all
// arrays but the biases are whole words.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    DenseDigestKernel(DenseTable table, int64_t most_words, uint64_t* sum) {
  constexpr int64_t kFloatBytes = sizeof(float);
  __shared__ ContentSum kept[WordSecrets::kKept];
  const WordSecrets secrets(kept, most_words);
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  uint64_t digest = 0;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
       i < table.row_count; i += stride) {
    ContentSum arrays;
    const auto add = [&](DenseArray array, const void* data,
                         int64_t row_bytes) {
      const auto* row = static_cast<const std::byte*>(data) + i * row_bytes;
      arrays += RowContent(
          static_cast<int64_t>(array),
          RowWords<kWhole>(row, row_bytes, secrets, [](int64_t, uint64_t) {}));
    };
    const auto add_bias = [&](DenseArray array, const float* data) {
      if (data == nullptr) return;
      arrays +=
          RowContent(static_cast<int64_t>(array),
                     WordContent(std::bit_cast<uint32_t>(data[i]), secrets[0]));
    };
    add(DenseArray::kWeights, table.weights, table.dim * SizeOf(table.dtype));
    if (table.master != nullptr) {
      add(DenseArray::kMaster, table.master, table.dim * kFloatBytes);
    }
    add(DenseArray::kFirstMoment, table.first_moment, table.dim * kFloatBytes);
    add(DenseArray::kSecondMoment, table.second_moment,
        table.dim * kFloatBytes);
    add_bias(DenseArray::kBias, table.bias);
    add_bias(DenseArray::kBiasFirstMoment, table.bias_first_moment);
    add_bias(DenseArray::kBiasSecondMoment, table.bias_second_moment);
    digest += DenseRowDigest(table.first_row_id + i, arrays);
  }
  if (threadIdx.x % kWarpSize == 0) AtomicAdd(*sum, digest);
}

}  // namespace

cudaError_t LaunchDenseDigest(const DenseTable& table, uint64_t* sum,
                              cudaStream_t stream) {
  constexpr int64_t kFloatBytes = sizeof(float);
  const bool whole =
      AreWholeWords(table.weights, table.dim * SizeOf(table.dtype)) &&
      AreWholeWords(table.master, table.dim * kFloatBytes) &&
      AreWholeWords(table.first_moment, table.dim * kFloatBytes) &&
      AreWholeWords(table.second_moment, table.dim * kFloatBytes);
  const auto kernel =
      whole ? DenseDigestKernel<true> : DenseDigestKernel<false>;
  const int64_t most_words = std::max<int64_t>(
      (table.dim * kFloatBytes + kWordBytes - 1) / kWordBytes, 1);
  kernel<<<FewBlocksFor(table.row_count, kWarps), kThreads, 0, stream>>>(
      table, most_words, sum);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
