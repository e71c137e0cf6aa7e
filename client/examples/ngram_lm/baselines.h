#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BASELINES_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BASELINES_H_

/// What a language model of counts makes of the same text: the measure of the
/// trained one. All tokens are ids in `[0, vocabulary_size)`.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace rowhouse::ngram_lm {

/// Each word by its frequency, with one added to every count (Laplace).
///
/// Thread-compatible.
class Unigram {
 public:
  Unigram(std::span<const int32_t> tokens, int32_t vocabulary_size);

  double Probability(int32_t token) const;

 private:
  std::vector<int64_t> counts_;
  double total_ = 0;
};

/// Interpolated Kneser-Ney of order 3, with the modified discounts of Chen and
/// Goodman (1999).
///
/// With c the count of an n-gram in the text for order 3, and for the orders
/// below it the number of distinct words seen before it:
///
///   P_n(w | h) = max(c(h w) - D(c(h w)), 0) / c(h .)  +  g(h) P_{n-1}(w | h')
///   g(h) = (D(1) N1(h) + D(2) N2(h) + D(3) N3+(h)) / c(h .)
///
/// where Nk(h) counts the words that follow h k times, h' is h without its
/// first word, and P_0 is 1 / vocabulary_size. A history never seen leaves all
/// to P_{n-1}. Discounts come from n_k, the number of n-grams of count k:
/// D(k) = k - (k + 1) Y n_{k+1} / n_k with Y = n_1 / (n_1 + 2 n_2); where one
/// of n_1, n_2, n_3 is 0 every discount is Y, or 1/2 where there is no Y or it
/// is 1.
///
/// Thread-compatible.
class KneserNeyTrigram {
 public:
  static constexpr int kOrder = 3;

  /// REQUIRES: `vocabulary_size <= 2^21`.
  KneserNeyTrigram(std::span<const int32_t> tokens, int32_t vocabulary_size);

  /// Of `token` after `history`, of which the last two count; fewer are fine.
  double Probability(std::span<const int32_t> history, int32_t token) const;

  /// D(count) of an order in [1, 3]; counts above 3 as 3.
  double Discount(int order, int64_t count) const;

 private:
  // Of one history: how often anything follows, and N1, N2, N3+.
  struct Followers {
    int64_t total = 0;
    std::array<int64_t, 3> distinct{};
  };
  struct Order {
    absl::flat_hash_map<uint64_t, int64_t> counts;       // By n-gram.
    absl::flat_hash_map<uint64_t, Followers> followers;  // By history.
    std::array<double, 3> discounts{};
  };

  static void Complete(Order& order);

  int32_t vocabulary_size_;
  std::array<Order, kOrder> orders_;
};

/// Gives the probability of a token after those before it in its block.
using ProbabilityFunction =
    std::function<double(std::span<const int32_t> history, int32_t token)>;

/// The mean of -log P, in nats, over the tokens from `first_scored` on of every
/// block. Its exponential is the perplexity. 0 where there is no such token.
double MeanLoss(std::span<const std::vector<int32_t>> blocks,
                int64_t first_scored, const ProbabilityFunction& probability);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BASELINES_H_
