#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BF16_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BF16_H_

#include <cstdint>
#include <span>
#include <vector>

namespace rowhouse::ngram_lm {

/// bfloat16, the upper half of an fp32: what travels and what the head
/// multiplies. The trainer computes in fp32.
using Bf16 = uint16_t;

/// Exactly.
std::vector<float> Widened(std::span<const Bf16> values);

/// To the nearest, ties to even. No value may be NaN.
std::vector<Bf16> Rounded(std::span<const float> values);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BF16_H_
