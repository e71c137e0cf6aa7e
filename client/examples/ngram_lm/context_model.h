#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CONTEXT_MODEL_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CONTEXT_MODEL_H_

#include <cstdint>
#include <span>
#include <vector>

namespace rowhouse::ngram_lm {

/// An exponential average of the embeddings up to a position,
/// a[t] = memory * a[t - 1] + (1 - memory) * e[t]. Memory 0: of this word only.
struct Average {
  float memory = 0;
  float weight = 1;
};

/// What turns rows into the hidden state that the head sees. All that learns is
/// in the tables:
///
///   hidden[t] = ngram[t] + sum over averages k of weight_k * sign_k * a_k[t]
///
/// `sign_k` is a fixed vector of +1 and -1, another for each average: the rows
/// of a tied table are also the head's, and without it a word would predict
/// itself. Sequences begin with averages of 0.
///
/// All matrices are [T, dim], row-major, a row a position. Thread-safe.
class ContextModel {
 public:
  /// Signs are bits of `std::mt19937_64(sign_seed)`.
  ContextModel(int64_t dim, std::vector<Average> averages, uint64_t sign_seed);

  /// `embeddings[t]` is the row of the word at t. Buffers may not overlap.
  void Forward(std::span<const float> embeddings, std::span<const float> ngram,
               std::span<float> hidden) const;

  /// From the gradient of `hidden`, which is that of `ngram` too, that of
  /// `embeddings`. Buffers may not overlap.
  void Backward(std::span<const float> hidden_gradient,
                std::span<float> embedding_gradient) const;

 private:
  size_t dim_;
  std::vector<Average> averages_;
  std::vector<float> signs_;  // [averages, dim]
};

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CONTEXT_MODEL_H_
