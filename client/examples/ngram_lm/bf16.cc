#include "client/examples/ngram_lm/bf16.h"

#include <algorithm>
#include <bit>

namespace rowhouse::ngram_lm {

std::vector<float> Widened(std::span<const Bf16> values) {
  std::vector<float> wide(values.size());
  std::transform(values.begin(), values.end(), wide.begin(), [](Bf16 bits) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  });
  return wide;
}

std::vector<Bf16> Rounded(std::span<const float> values) {
  std::vector<Bf16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), [](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return static_cast<Bf16>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  });
  return rounded;
}

}  // namespace rowhouse::ngram_lm
