#ifndef ROWHOUSE_BENCH_SUPPORT_INPUTS_H_
#define ROWHOUSE_BENCH_SUPPORT_INPUTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/arithmetic.h"

namespace rowhouse::bench {

/// Normal values, to be repeated over a whole array; their number is odd, so
/// that no two rows of an even width are alike.
inline std::vector<float> Normal(float scale = 1.0F) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values((1 << 16) + 1);
  for (float& x : values) x = normal(random);
  return values;
}

/// Their squares.
inline std::vector<float> NormalSquares(float scale = 1.0F) {
  std::vector<float> values = Normal(scale);
  for (float& x : values) x *= x;
  return values;
}

/// The same values in bf16.
inline std::vector<uint16_t> NormalBf16(float scale = 1.0F) {
  const std::vector<float> values = Normal(scale);
  std::vector<uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(),
                 kernels::FloatToBf16);
  return rounded;
}

/// `count` distinct numbers in `[0, range)`, ascending: one at random from each
/// of equal shares of the range.
///
/// REQUIRES: `count <= range`.
inline std::vector<int64_t> SpreadNumbers(int64_t count, int64_t range,
                                          uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto share = static_cast<uint64_t>(range / count);
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  uint64_t first = 0;
  for (int64_t& number : numbers) {
    number = static_cast<int64_t>(first + random() % share);
    first += share;
  }
  return numbers;
}

inline std::vector<int64_t> Shuffled(std::vector<int64_t> numbers) {
  std::mt19937_64 random(3);
  std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

inline int64_t CountDistinct(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::unique(numbers.begin(), numbers.end()) - numbers.begin();
}

/// How numbers are drawn from a range.
enum class Spread : int64_t { kEven = 0, kZipf = 1, kOne = 2 };

/// `count` numbers in `[0, range)`, repeats among them. kZipf: number r with a
/// frequency of about 1 / (r + 1).
inline std::vector<int64_t> DrawNumbers(Spread spread, int64_t count,
                                        int64_t range, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto end = static_cast<double>(range);
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t& number : numbers) {
    switch (spread) {
      case Spread::kEven:
        number = static_cast<int64_t>(uniform(random) * end);
        break;
      case Spread::kZipf:
        number = static_cast<int64_t>(std::pow(end, uniform(random))) - 1;
        break;
      case Spread::kOne:
        number = std::min<int64_t>(17, range - 1);
        break;
    }
  }
  return numbers;
}

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_INPUTS_H_
