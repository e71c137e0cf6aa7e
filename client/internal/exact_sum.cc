#include "client/internal/exact_sum.h"

#include <array>
#include <bit>
#include <cmath>

namespace rowhouse::client::internal {
namespace {

// The sum in units of 2^-149, 64 bits a word, the lowest first: at most
// 255 * 2^63 * 2^253 < 2^324.
constexpr int kWords = 6;
using Words = std::array<uint64_t, kWords>;

void AddShifted(Words& words, uint64_t value, int shift) {
  const int word = shift / 64;
  const int bit = shift % 64;
  const uint64_t parts[2] = {value << bit, bit == 0 ? 0 : value >> (64 - bit)};
  uint64_t carry = 0;
  for (int i = word; i < kWords; ++i) {
    const uint64_t part = i - word < 2 ? parts[i - word] : 0;
    const uint64_t sum = words[i] + part;
    const uint64_t result = sum + carry;
    carry = (sum < part ? 1 : 0) + (result < sum ? 1 : 0);
    words[i] = result;
  }
}

int BitCount(const Words& words) {
  for (int i = kWords - 1; i >= 0; --i) {
    if (words[i] != 0) return i * 64 + std::bit_width(words[i]);
  }
  return 0;
}

bool BitAt(const Words& words, int bit) {
  return ((words[bit / 64] >> (bit % 64)) & 1) != 0;
}

bool AnyBelow(const Words& words, int bit) {
  for (int i = 0; i < bit / 64; ++i) {
    if (words[i] != 0) return true;
  }
  const uint64_t mask = (uint64_t{1} << (bit % 64)) - 1;
  return (words[bit / 64] & mask) != 0;
}

uint64_t BitsFrom(const Words& words, int bit) {
  const int word = bit / 64;
  const int shift = bit % 64;
  uint64_t bits = words[word] >> shift;
  if (shift != 0 && word + 1 < kWords) bits |= words[word + 1] << (64 - shift);
  return bits;
}

}  // namespace

double RoundExactSum(std::span<const int64_t> significand_sums) {
  constexpr int kDoubleBits = 53;
  Words words = {};
  for (size_t x = 0; x < significand_sums.size(); ++x) {
    const int shift = x == 0 ? 0 : static_cast<int>(x) - 1;
    AddShifted(words, static_cast<uint64_t>(significand_sums[x]), shift);
  }
  // No result of such sums is a subnormal double, and none overflows: all lie
  // in [2^-149, 2^175).
  const int drop = BitCount(words) - kDoubleBits;
  if (drop <= 0) return std::ldexp(static_cast<double>(words[0]), -149);
  uint64_t kept = BitsFrom(words, drop) & ((uint64_t{1} << kDoubleBits) - 1);
  const bool half = BitAt(words, drop - 1);
  const bool odd = (kept & 1) != 0;
  if (half && (odd || AnyBelow(words, drop - 1))) ++kept;
  return std::ldexp(static_cast<double>(kept), drop - 149);
}

}  // namespace rowhouse::client::internal
