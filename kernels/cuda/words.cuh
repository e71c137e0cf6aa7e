#ifndef ROWHOUSE_KERNELS_CUDA_WORDS_CUH_
#define ROWHOUSE_KERNELS_CUDA_WORDS_CUH_

/// Rows as 64-bit words, for content and digests (hash.h).

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/hash.h"

namespace rowhouse::kernels::cuda {

inline constexpr int64_t kWordBytes = 8;

/// Word secrets of a block, in shared memory, as far as they fit; the others
/// are computed where they are used.
class WordSecrets {
 public:
  static constexpr int64_t kKept = 1024;

  /// Fills `kept`, of shared memory, with all threads of the block.
  __device__ WordSecrets(ContentSum* kept, int64_t word_count) : kept_(kept) {
    const int64_t count = word_count < kKept ? word_count : kKept;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      kept[i] = WordSecret(i);
    }
    __syncthreads();
  }

  __device__ ContentSum operator[](int64_t word) const {
    return word < kKept ? kept_[word] : WordSecret(word);
  }

 private:
  const ContentSum* kept_;
};

/// Word `word` of the row at `row`, padded with zeros. `kWhole`: rows begin
/// and end at multiples of 8 bytes; else at multiples of 2.
template <bool kWhole>
__device__ uint64_t LoadWord(const std::byte* row, int64_t row_bytes,
                             int64_t word) {
  if constexpr (kWhole) {
    return __ldcs(reinterpret_cast<const unsigned long long*>(row) + word);
  } else {
    const auto* halves = reinterpret_cast<const uint16_t*>(row) + word * 4;
    const int64_t count = row_bytes / 2 - word * 4;
    uint64_t value = 0;
    for (int i = 0; i < 4; ++i) {
      if (i < count) value |= uint64_t{halves[i]} << (16 * i);
    }
    return value;
  }
}

inline bool AreWholeWords(const void* rows, int64_t row_bytes) {
  return reinterpret_cast<uintptr_t>(rows) % kWordBytes == 0 &&
         row_bytes % kWordBytes == 0;
}

/// Sum over the lanes, in all of them.
__device__ inline uint64_t SumOfLanes(uint64_t x) {
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, offset);
  }
  return x;
}

/// Sum of `WordContent` over a row by one warp, in all lanes; `visit(word,
/// value)` sees each word.
template <bool kWhole, typename Visit>
__device__ ContentSum RowWords(const std::byte* row, int64_t row_bytes,
                               const WordSecrets& secrets, Visit visit) {
  const int64_t word_count = (row_bytes + kWordBytes - 1) / kWordBytes;
  ContentSum sum;
#pragma unroll 4
  for (int64_t word = threadIdx.x % kWarpSize; word < word_count;
       word += kWarpSize) {
    const uint64_t value = LoadWord<kWhole>(row, row_bytes, word);
    sum += WordContent(value, secrets[word]);
    visit(word, value);
  }
  return {SumOfLanes(sum.low), SumOfLanes(sum.high)};
}

__device__ inline void AtomicAdd(uint64_t& sum, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&sum),
            static_cast<unsigned long long>(value));
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_WORDS_CUH_
