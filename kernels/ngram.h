#ifndef ROWHOUSE_KERNELS_NGRAM_H_
#define ROWHOUSE_KERNELS_NGRAM_H_

#include <cstdint>
#include <span>

#include "kernels/dtype.h"

namespace rowhouse::kernels {

/// The pool of sign rows: entry (i, j) is +1 or -1.
struct SignPool {
  uint64_t seed = 0;
  int64_t row_count = 8192;  ///< A power of two.
  /// An imported pool, or null to compute it from `seed` (`SignWord`):
  /// [row_count, (dim + 63) / 64] words, bit `j % 64` of word `j / 64` set for -1.
  const uint64_t* words = nullptr;
};

/// One step of a cycle: the tokens, where their rows lie in the cache, and the
/// gradient of the embedding's output.
struct NgramStep {
  std::span<const int32_t> tokens;  ///< [T].
  std::span<const int64_t> slots;   ///< [2T]: T bigram slots, then T trigram slots.
  const void* gradient = nullptr;   ///< [T, dim], the gradient dtype.
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_NGRAM_H_
