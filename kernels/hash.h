#ifndef ROWHOUSE_KERNELS_HASH_H_
#define ROWHOUSE_KERNELS_HASH_H_

/// The stated 64-bit hashes: initial values, sign rows, digests and the content
/// of parts. Integer arithmetic modulo 2^64, the same on host and device; any
/// language can repeat them from this file.

#include <bit>
#include <cstdint>

namespace rowhouse::kernels {

/// 2^64 divided by the golden ratio, odd.
inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A hash of (seed, i, j).
constexpr uint64_t Hash3(uint64_t seed, uint64_t i, uint64_t j) {
  return Mix64(Mix64(seed + (i + 1) * kGolden) + (j + 1) * kGolden);
}

/// Initial value of (row_id, column) under UNIFORM(seed, bound): in
/// (-bound, bound). The top 24 bits `k` of the hash give the odd integer
/// `2k + 1 - 2^24`, which fp32 holds exactly; scaled by 2^-24, exact too; one
/// fp32 multiply by `bound`.
constexpr float UniformInitial(uint64_t seed, float bound, int64_t row_id,
                               int64_t column) {
  const auto k = static_cast<int32_t>(
      Hash3(seed, static_cast<uint64_t>(row_id),
            static_cast<uint64_t>(column)) >> 40);
  return bound * (static_cast<float>(2 * k + 1 - (1 << 24)) * 0x1p-24F);
}

/// 64 entries of the sign pool: bit `j % 64` of the result is set where entry
/// (row, j), `j / 64 == word`, is -1, and clear where it is +1.
constexpr uint64_t SignWord(uint64_t seed, int64_t row, int64_t word) {
  return Hash3(seed, static_cast<uint64_t>(row), static_cast<uint64_t>(word));
}

/// 128 bits in two words, added word by word modulo 2^64. Addition has no
/// order, so a sum may be gathered in any cut and any order.
struct ContentSum {
  uint64_t low = 0;
  uint64_t high = 0;

  constexpr ContentSum& operator+=(const ContentSum& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend constexpr bool operator==(const ContentSum&,
                                   const ContentSum&) = default;
};

inline constexpr uint64_t kSecretHigh = 0xc2b2ae3d27d4eb4fULL;

/// Secret of the `word`-th 64-bit word of a row, for each half of the sum.
constexpr ContentSum WordSecret(int64_t word) {
  const uint64_t key = (static_cast<uint64_t>(word) + 1) * kGolden;
  return {Mix64(key), Mix64(key ^ kSecretHigh)};
}

/// One 64-bit word of a row, mixed with its secret: the product of the two
/// 32-bit halves of `value ^ secret`, plus the value (halves swapped in `low`).
/// One 32x32 multiply a half, so SIMD and GPU code is as fast as memory.
constexpr ContentSum WordContent(uint64_t value, const ContentSum& secret) {
  const uint64_t a = value ^ secret.low;
  const uint64_t b = value ^ secret.high;
  return {(a & 0xffffffffULL) * (a >> 32) + std::rotl(value, 32),
          (b & 0xffffffffULL) * (b >> 32) + value};
}

/// Content of the row at `position` of a part: `words` is the sum of
/// `WordContent` over the row's bytes, read as little-endian 64-bit words, the
/// last one padded with zeros.
constexpr ContentSum RowContent(int64_t position, const ContentSum& words) {
  const uint64_t key = (static_cast<uint64_t>(position) + 1) * kGolden;
  return {Mix64(words.low + key), Mix64(words.high ^ Mix64(key))};
}

/// Content of the global row id at `position` of a part.
constexpr ContentSum IdContent(int64_t position, int64_t row_id) {
  return RowContent(position, WordContent(static_cast<uint64_t>(row_id),
                                          WordSecret(0)));
}

/// A sparse row's share of the table digest. `words` as in `RowContent`, over
/// the row's weights; `second_moment_bits` as if brought current.
constexpr uint64_t RowDigest(int64_t row_id, const ContentSum& words,
                             uint32_t second_moment_bits) {
  return Mix64(Mix64(words.low + (static_cast<uint64_t>(row_id) + 1) * kGolden) +
               Mix64(words.high ^ second_moment_bits));
}

/// The arrays of a dense row that its digest covers, in this order; those that
/// a table has not are left out. A bias and its moments are rows of one column.
enum class DenseArray : int64_t {
  kWeights = 0,
  kMaster = 1,
  kFirstMoment = 2,
  kSecondMoment = 3,
  kBias = 4,
  kBiasFirstMoment = 5,
  kBiasSecondMoment = 6,
};

/// A dense row's share of the table digest. `arrays` is the sum of
/// `RowContent(array, words)` over the row's arrays, `words` as there.
constexpr uint64_t DenseRowDigest(int64_t row_id, const ContentSum& arrays) {
  return Mix64(
      Mix64(arrays.low + (static_cast<uint64_t>(row_id) + 1) * kGolden) +
      Mix64(arrays.high));
}

/// Share of event number and beta2 history in the table digest: `Hash3` over
/// (event, bits of beta2), summed, then mixed with the event count. Added once
/// to the sum of the shards' rows.
constexpr uint64_t HistoryDigest(const float* beta2, int64_t event_count) {
  uint64_t sum = 0;
  for (int64_t event = 1; event <= event_count; ++event) {
    sum += Hash3(kSecretHigh, static_cast<uint64_t>(event),
                 std::bit_cast<uint32_t>(beta2[event]));
  }
  return Mix64(sum + static_cast<uint64_t>(event_count));
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_HASH_H_
