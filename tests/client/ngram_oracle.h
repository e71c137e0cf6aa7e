#ifndef ROWHOUSE_TESTS_CLIENT_NGRAM_ORACLE_H_
#define ROWHOUSE_TESTS_CLIENT_NGRAM_ORACLE_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/hash.h"
#include "rowhouse/types.h"

namespace rowhouse::testing {

/// An n-gram table of fp32 rows of 4 elements, step by step as it is stated,
/// with loops over everything.
class NgramOracle {
 public:
  static constexpr int64_t kDim = 4;
  using Row = std::vector<float>;
  using Rows = std::vector<Row>;

  NgramOracle(int64_t row_count, uint64_t sign_seed, int64_t sign_row_count)
      : row_count_(row_count),
        sign_seed_(sign_seed),
        sign_row_count_(sign_row_count),
        weights_(row_count, Row(kDim)),
        second_moment_(row_count) {}

  /// T bigram ids, then T trigram ids.
  std::vector<int64_t> RowIds(const std::vector<int32_t>& x) const {
    const int64_t half = row_count_ / 2;
    const auto count = static_cast<int64_t>(x.size());
    std::vector<int64_t> ids(2 * count);
    for (int64_t t = 0; t < count; ++t) {
      ids[t] = half - 1;
      ids[count + t] = row_count_ - 1;
      if (t >= 1) {
        const int64_t before = t == 1 ? half - 1 : x[t - 1];
        ids[t] = Modulo(Wrap(36313, x[t]) ^ Wrap(27191, before), half - 1);
      }
      if (t >= 2) {
        ids[count + t] =
            half + Modulo(Wrap(17351, x[t]) ^ Wrap(60961, x[t - 1]) ^
                              Wrap(45259, x[t - 2]),
                          row_count_ - half - 1);
      }
    }
    return ids;
  }

  /// +1 or -1 of element `j`, for the bigram and the trigram at `t`.
  float BigramSign(const std::vector<int32_t>& x, int64_t t, int64_t j) const {
    const int64_t row = t < 1 ? 0
                              : (Wrap(30011, x[t - 1]) ^ Wrap(48271, x[t])) &
                                    static_cast<int32_t>(sign_row_count_ - 1);
    return Sign(row, j);
  }
  float TrigramSign(const std::vector<int32_t>& x, int64_t t, int64_t j) const {
    const int64_t row = t < 2 ? 0
                              : (Wrap(26801, x[t - 2]) ^ Wrap(39779, x[t - 1]) ^
                                 Wrap(58699, x[t])) &
                                    static_cast<int32_t>(sign_row_count_ - 1);
    return Sign(row, j);
  }

  Rows Embed(const std::vector<int32_t>& x) const {
    const std::vector<int64_t> ids = RowIds(x);
    const auto count = static_cast<int64_t>(x.size());
    Rows out(count, Row(kDim));
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t j = 0; j < kDim; ++j) {
        out[t][j] = weights_[ids[t]][j] * BigramSign(x, t, j) +
                    weights_[ids[count + t]][j] * TrigramSign(x, t, j);
      }
    }
    return out;
  }

  /// A trainer's cycle: per row the run-sum over (step, position).
  std::map<int64_t, Row> CycleGradient(
      const std::vector<std::vector<int32_t>>& steps,
      const std::vector<Rows>& gradients) const {
    std::map<int64_t, Rows> entries;
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::vector<int64_t> ids = RowIds(steps[s]);
      const auto count = static_cast<int64_t>(steps[s].size());
      for (int64_t i = 0; i < 2 * count; ++i) {
        Row entry(kDim);
        for (int64_t j = 0; j < kDim; ++j) {
          const int64_t t = i % count;
          entry[j] =
              gradients[s][t][j] * (i < count ? BigramSign(steps[s], t, j)
                                              : TrigramSign(steps[s], t, j));
        }
        entries[ids[i]].push_back(entry);
      }
    }
    std::map<int64_t, Row> sums;
    for (const auto& [id, rows] : entries) sums[id] = RunSum(rows);
    return sums;
  }

  /// Event `event_count() + 1`: the trainers' gradients, by rank, summed.
  void Apply(const std::vector<std::map<int64_t, Row>>& gradients,
             const client::RowAdamScalars& scalars) {
    std::map<int64_t, Rows> entries;
    for (const auto& gradient : gradients) {
      for (const auto& [id, row] : gradient) entries[id].push_back(row);
    }
    const auto beta2 = static_cast<float>(scalars.beta2);
    const double scale = scalars.gradient_scale;
    const auto sq_mul =
        static_cast<float>((1.0 - scalars.beta2) * (scale * scale));
    for (int64_t id = 0; id < row_count_; ++id) {
      float& v = second_moment_[id];
      if (!entries.contains(id)) {
        v = v * beta2;  // Eagerly: the same as being replayed later.
        continue;
      }
      const Row g = RunSum(entries[id]);
      const float mean_square = SumOfSquares(g) / static_cast<float>(kDim);
      v = v * beta2 + mean_square * sq_mul;
      const float denominator = std::sqrt(v) + static_cast<float>(scalars.eps);
      for (int64_t j = 0; j < kDim; ++j) {
        float& p = weights_[id][j];
        float u = ((g[j] * static_cast<float>(scale)) / denominator) *
                  static_cast<float>(scalars.step_size);
        if (u * p > 0) u = u + p * static_cast<float>(scalars.decay);
        p = p - u;
      }
    }
  }

 private:
  static int32_t Wrap(int64_t factor, int64_t token) {
    return static_cast<int32_t>(static_cast<uint32_t>(factor * token));
  }
  static int64_t Modulo(int64_t value, int64_t modulus) {
    return ((value % modulus) + modulus) % modulus;
  }
  float Sign(int64_t row, int64_t j) const {
    const uint64_t word = kernels::SignWord(sign_seed_, row, j / 64);
    return ((word >> (j % 64)) & 1) != 0 ? -1.0F : 1.0F;
  }
  static Row RunSum(const Rows& entries) {
    Row total(kDim);
    for (size_t begin = 0; begin < entries.size(); begin += 10) {
      Row chunk(kDim);
      for (size_t i = begin; i < entries.size() && i < begin + 10; ++i) {
        for (int64_t j = 0; j < kDim; ++j) chunk[j] += entries[i][j];
      }
      for (int64_t j = 0; j < kDim; ++j) total[j] += chunk[j];
    }
    return total;
  }
  // Four partial sums, folded by halves.
  static float SumOfSquares(const Row& g) {
    return (g[0] * g[0] + g[2] * g[2]) + (g[1] * g[1] + g[3] * g[3]);
  }

  const int64_t row_count_;
  const uint64_t sign_seed_;
  const int64_t sign_row_count_;
  Rows weights_;
  std::vector<float> second_moment_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_NGRAM_ORACLE_H_
