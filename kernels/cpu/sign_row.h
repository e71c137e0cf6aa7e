#ifndef ROWHOUSE_KERNELS_CPU_SIGN_ROW_H_
#define ROWHOUSE_KERNELS_CPU_SIGN_ROW_H_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/hash.h"
#include "kernels/ngram.h"

namespace rowhouse::kernels::cpu {

/// One row of a sign pool, as masks to xor with the upper half of an element.
/// Scratch of one row; allocate it once per loop body.
class SignRow {
 public:
  SignRow(const SignPool& pool, int64_t dim)
      : pool_(pool),
        word_count_((dim + 63) / 64),
        masks_(static_cast<size_t>(word_count_ * 64)) {}

  /// Reads row `row` of the pool.
  void Load(int64_t row) {
    uint16_t* to = masks_.data();
    for (int64_t word = 0; word < word_count_; ++word) {
      uint64_t signs = pool_.words == nullptr
                           ? SignWord(pool_.seed, row, word)
                           : pool_.words[row * word_count_ + word];
      for (int byte = 0; byte < 8; ++byte, to += 8, signs >>= 8) {
        std::memcpy(to, kMasksOfByte[signs & 0xff].data(), 8 * sizeof(*to));
      }
    }
  }

  /// Element `x` of column `j` times the sign, exactly.
  uint16_t Flip(uint16_t x, int64_t j) const {
    return static_cast<uint16_t>(x ^ masks_[static_cast<size_t>(j)]);
  }
  float Flip(float x, int64_t j) const {
    return std::bit_cast<float>(
        std::bit_cast<uint32_t>(x) ^
        (uint32_t{masks_[static_cast<size_t>(j)]} << 16));
  }

 private:
  static constexpr auto kMasksOfByte = [] {
    std::array<std::array<uint16_t, 8>, 256> masks{};
    for (size_t byte = 0; byte < 256; ++byte) {
      for (size_t bit = 0; bit < 8; ++bit) {
        masks[byte][bit] = (byte >> bit & 1) != 0 ? 0x8000 : 0;
      }
    }
    return masks;
  }();

  const SignPool pool_;
  const int64_t word_count_;
  std::vector<uint16_t> masks_;
};

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_SIGN_ROW_H_
