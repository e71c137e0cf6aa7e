#ifndef ROWHOUSE_KERNELS_CUDA_SIGNS_CUH_
#define ROWHOUSE_KERNELS_CUDA_SIGNS_CUH_

/// Sign rows of the n-gram embedding, formed in registers.

#include <bit>
#include <cstdint>

#include "kernels/hash.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cuda {

/// Signs of columns `column ..` of row `row` of a pool of `dim` columns, up to
/// the next multiple of 64: bit `i` is that of `column + i`, set for -1.
__device__ inline uint64_t SignBits(const SignPool& pool, int64_t dim,
                                    int64_t row, int64_t column) {
  const int64_t word = column / 64;
  const uint64_t signs = pool.words == nullptr
                             ? SignWord(pool.seed, row, word)
                             : pool.words[row * ((dim + 63) / 64) + word];
  return signs >> (column % 64);
}

/// `x`, negated where bit `i` of `signs` is set. Exact.
__device__ inline uint16_t Flip(uint16_t x, uint64_t signs, int i) {
  return static_cast<uint16_t>(x ^ ((signs >> i & 1) << 15));
}
__device__ inline float Flip(float x, uint64_t signs, int i) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^
                              static_cast<uint32_t>((signs >> i & 1) << 31));
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SIGNS_CUH_
