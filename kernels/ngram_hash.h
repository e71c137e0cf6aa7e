#ifndef ROWHOUSE_KERNELS_NGRAM_HASH_H_
#define ROWHOUSE_KERNELS_NGRAM_HASH_H_

/// Row ids and sign rows of the hashed n-gram table (the public
/// modded-nanogpt `ngram_table`). Products wrap modulo 2^32; the remainder has
/// the sign of the divisor, so it is never negative.

#include <cstdint>

namespace rowhouse::kernels {

/// How one table of `row_count` rows is divided: bigram rows `[0, half)`,
/// trigram rows `[half, row_count)`. The last row of each part is reserved for
/// positions without enough history and never produced by hashing.
struct NgramLayout {
  int64_t half;
  int64_t bigram_modulus;
  int64_t trigram_modulus;

  /// REQUIRES: `4 <= row_count < 2^31`.
  static constexpr NgramLayout Of(int64_t row_count) {
    const int64_t half = row_count / 2;
    return {half, half - 1, row_count - half - 1};
  }
  constexpr int64_t bigram_reserved() const { return bigram_modulus; }
  constexpr int64_t trigram_reserved() const { return half + trigram_modulus; }
};

/// `factor * token` modulo 2^32.
constexpr uint32_t WrappingProduct(uint32_t factor, int32_t token) {
  return factor * static_cast<uint32_t>(token);
}

/// Remainder of the int32 with these bits, in `[0, modulus)`.
constexpr int64_t FloorModulo(uint32_t bits, int64_t modulus) {
  const int64_t remainder = int64_t{static_cast<int32_t>(bits)} % modulus;
  return remainder < 0 ? remainder + modulus : remainder;
}

/// Row of the bigram that ends at position `t`.
///
/// Position 1 mixes the reserved id in place of `tokens[0]`.
constexpr int64_t BigramRowId(const int32_t* tokens, int64_t t,
                              const NgramLayout& layout) {
  if (t == 0) return layout.bigram_reserved();
  const int32_t previous =
      t == 1 ? static_cast<int32_t>(layout.bigram_reserved()) : tokens[t - 1];
  return FloorModulo(WrappingProduct(36313, tokens[t]) ^
                         WrappingProduct(27191, previous),
                     layout.bigram_modulus);
}

/// Row of the trigram that ends at position `t`.
constexpr int64_t TrigramRowId(const int32_t* tokens, int64_t t,
                               const NgramLayout& layout) {
  if (t < 2) return layout.trigram_reserved();
  return layout.half + FloorModulo(WrappingProduct(17351, tokens[t]) ^
                                       WrappingProduct(60961, tokens[t - 1]) ^
                                       WrappingProduct(45259, tokens[t - 2]),
                                   layout.trigram_modulus);
}

/// Sign-pool row of the bigram at `t`; 0 where history is short. Unlike the
/// row id it mixes the real `tokens[0]` at position 1.
///
/// REQUIRES: `sign_row_count` is a power of two.
constexpr int64_t BigramSignRow(const int32_t* tokens, int64_t t,
                                int64_t sign_row_count) {
  if (t < 1) return 0;
  const uint32_t mixed = WrappingProduct(30011, tokens[t - 1]) ^
                         WrappingProduct(48271, tokens[t]);
  return int64_t{mixed} & (sign_row_count - 1);
}

/// Sign-pool row of the trigram at `t`; 0 where history is short.
///
/// REQUIRES: `sign_row_count` is a power of two.
constexpr int64_t TrigramSignRow(const int32_t* tokens, int64_t t,
                                 int64_t sign_row_count) {
  if (t < 2) return 0;
  const uint32_t mixed = WrappingProduct(26801, tokens[t - 2]) ^
                         WrappingProduct(39779, tokens[t - 1]) ^
                         WrappingProduct(58699, tokens[t]);
  return int64_t{mixed} & (sign_row_count - 1);
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_NGRAM_HASH_H_
