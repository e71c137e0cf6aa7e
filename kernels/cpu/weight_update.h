#ifndef ROWHOUSE_KERNELS_CPU_WEIGHT_UPDATE_H_
#define ROWHOUSE_KERNELS_CPU_WEIGHT_UPDATE_H_

/// The weights of one row, updated: in place and fast, where nothing can go
/// wrong, or beside the row, whatever the values.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/element.h"
#include "kernels/quotient.h"

namespace rowhouse::kernels::cpu {

/// The bits of an element without its sign, doubled: as ordered as magnitudes.
inline uint16_t TwiceMagnitude(uint16_t bits) {
  return static_cast<uint16_t>(2 * bits);
}
inline uint32_t TwiceMagnitude(float x) {
  return 2 * std::bit_cast<uint32_t>(x);
}
inline float FromTwiceMagnitude(uint16_t twice) {
  return Widen(static_cast<uint16_t>(twice / 2));
}
inline float FromTwiceMagnitude(uint32_t twice) {
  return std::bit_cast<float>(twice / 2);
}

/// Bounds of the values of an update.
struct Magnitudes {
  float least_gradient;  ///< But for zeros; not above the least.
  float most_weight;     ///< NaN where a weight is NaN.

  template <typename Gradient, typename Weight>
  static Magnitudes Of(const Gradient* gradient, const Weight* weights,
                       int64_t dim) {
    using LeastBits = decltype(TwiceMagnitude(*gradient));
    using MostBits = decltype(TwiceMagnitude(*weights));
    auto least = static_cast<LeastBits>(-1);
    MostBits most = 0;
    for (int64_t j = 0; j < dim; ++j) {
      // Less 1, zero becomes the largest.
      least = std::min(least,
                       static_cast<LeastBits>(TwiceMagnitude(gradient[j]) - 1));
      most = std::max(most, TwiceMagnitude(weights[j]));
    }
    // All zeros: the largest finite value stands for them.
    least = std::min(least, TwiceMagnitude(Narrow<Gradient>(0x1.fep127F)));
    return {FromTwiceMagnitude(least), FromTwiceMagnitude(most)};
  }

  /// Whether `UpdateInPlace` serves this row: `Quotient` serves all its
  /// gradients, and no weight can stop being finite. `sum_of_squares` is of the
  /// merged gradient.
  bool AreUsual(float sum_of_squares, float denominator,
                const RowAdamFactors& factors) const {
    constexpr float kMost = 0x1p59F;
    constexpr float kMostWeight = 0x1p124F;
    // No gradient is above the root but for its rounding.
    const float most_x = 1.01F * std::sqrt(sum_of_squares) * factors.grad_mul;
    return least_gradient * factors.grad_mul >= 0x1p-59F && most_x <= kMost &&
           Quotient::Serves(denominator) &&
           std::fabs(factors.step_size) * (most_x / denominator) <=
               kMostWeight &&
           std::fabs(factors.decay) <= 1.0F && most_weight <= kMostWeight;
  }
};

/// Scratch for the steps (`WeightStep`) of a row of bf16 weights.
class RowSteps {
 public:
  explicit RowSteps(int64_t dim)
      : even_(static_cast<size_t>(dim / 2)),
        odd_(static_cast<size_t>(dim / 2)) {}

  float* even() { return even_.data(); }
  float* odd() { return odd_.data(); }

 private:
  std::vector<float> even_;  // Of columns 0, 2, ...
  std::vector<float> odd_;
};

/// Rows of fewer columns are sooner updated beside than looked at for their
/// `Magnitudes`.
inline constexpr int64_t kLeastColumnsInPlace = 192;

/// Columns of an update in place between one request for lines ahead and the
/// next.
inline constexpr int64_t kUpdateColumns = 128;

/// Updates a row whose `Magnitudes` are usual, on a CPU with fused
/// multiply-add. Calls `fetch(begin, end)` for all columns, some at a time.
template <typename Merged, typename Fetch>
void UpdateInPlace(uint16_t* __restrict row, const Merged& g, int64_t dim,
                   const Quotient& quotient, RowAdamFactors factors,
                   RowSteps& steps, const Fetch& fetch) {
  const auto step = [&](float gradient) {
    return WeightStep(quotient.Of(gradient * factors.grad_mul), factors);
  };
  // Two loops: of one alone, a core has too few columns under way at a time.
  // Each fetches half of what is to come, so that requests come evenly.
  constexpr int64_t kBlockPairs = kUpdateColumns / 2;
  const int64_t pair_count = dim / 2;
  float* __restrict even = steps.even();
  float* __restrict odd = steps.odd();
  for (int64_t first = 0; first < pair_count; first += kBlockPairs) {
    fetch(2 * first, 2 * first + kBlockPairs);
    const int64_t last = std::min(pair_count, first + kBlockPairs);
    for (int64_t i = first; i < last; ++i) {
      const Bf16Pair merged = g.Pair(2 * i);
      even[i] = step(merged.even);
      odd[i] = step(merged.odd);
    }
  }
  for (int64_t first = 0; first < pair_count; first += kBlockPairs) {
    fetch(2 * first + kBlockPairs, 2 * (first + kBlockPairs));
    const int64_t last = std::min(pair_count, first + kBlockPairs);
    for (int64_t i = first; i < last; ++i) {
      const Bf16Pair p = Bf16Pair::Load(row + 2 * i);
      const uint32_t word = Bf16Pair{TakeStep(p.even, even[i], factors),
                                     TakeStep(p.odd, odd[i], factors)}
                                .NumberWord();
      std::memcpy(row + 2 * i, &word, sizeof(word));
    }
  }
  if (dim % 2 != 0) {
    uint16_t& last = row[dim - 1];
    last = Narrow<uint16_t>(TakeStep(Widen(last), step(g(dim - 1)), factors));
  }
}

template <typename Merged, typename Fetch>
void UpdateInPlace(float* __restrict row, const Merged& g, int64_t dim,
                   const Quotient& quotient, RowAdamFactors factors,
                   RowSteps& /*steps*/, const Fetch& fetch) {
  for (int64_t first = 0; first < dim; first += kUpdateColumns) {
    fetch(first, first + kUpdateColumns);
    const int64_t last = std::min(dim, first + kUpdateColumns);
    for (int64_t j = first; j < last; ++j) {
      const float u = WeightStep(quotient.Of(g(j) * factors.grad_mul), factors);
      row[j] = TakeStep(row[j], u, factors);
    }
  }
}

/// Writes the updated row to `to`, whatever its values, and says whether all of
/// it is finite. Fetches as `UpdateInPlace`.
template <typename Merged, typename Fetch>
bool UpdateBeside(const uint16_t* __restrict from, const Merged& g, int64_t dim,
                  float denominator, RowAdamFactors factors, const Fetch& fetch,
                  uint16_t* __restrict to) {
  // Each half's exponent of all ones carries into its sign's place.
  uint32_t carries = 0;
  const auto carries_of = [](uint32_t word) {
    return (word & 0x7f807f80U) + 0x00800080U;
  };
  for (int64_t first = 0; first < dim; first += kUpdateColumns) {
    fetch(first, first + kUpdateColumns);
    const int64_t last = std::min(dim - dim % 2, first + kUpdateColumns);
    for (int64_t j = first; j < last; j += 2) {
      const Bf16Pair p = Bf16Pair::Load(from + j);
      const Bf16Pair merged = g.Pair(j);
      const uint32_t word =
          Bf16Pair{UpdateWeight(p.even, merged.even, denominator, factors),
                   UpdateWeight(p.odd, merged.odd, denominator, factors)}
              .Word();
      std::memcpy(to + j, &word, sizeof(word));
      carries |= carries_of(word);
    }
  }
  if (dim % 2 != 0) {
    const int64_t j = dim - 1;
    to[j] = Narrow<uint16_t>(
        UpdateWeight(Widen(from[j]), g(j), denominator, factors));
    carries |= carries_of(to[j]);
  }
  return (carries & 0x80008000U) == 0;
}

template <typename Merged, typename Fetch>
bool UpdateBeside(const float* __restrict from, const Merged& g, int64_t dim,
                  float denominator, RowAdamFactors factors, const Fetch& fetch,
                  float* __restrict to) {
  int32_t largest = 0;  // Of the bits without sign.
  for (int64_t first = 0; first < dim; first += kUpdateColumns) {
    fetch(first, first + kUpdateColumns);
    const int64_t last = std::min(dim, first + kUpdateColumns);
    for (int64_t j = first; j < last; ++j) {
      to[j] = Canonical(UpdateWeight(from[j], g(j), denominator, factors));
      largest = std::max(largest,
                         std::bit_cast<int32_t>(to[j]) & int32_t{0x7fffffff});
    }
  }
  return largest < 0x7f800000;
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_WEIGHT_UPDATE_H_
