#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LM_TRAINER_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LM_TRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/ngram_lm/batches.h"
#include "client/examples/ngram_lm/bf16.h"
#include "client/examples/ngram_lm/context_model.h"
#include "client/examples/ngram_lm/recipe.h"
#include "rowhouse/cluster.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/ngram_schedule.h"
#include "rowhouse/trainer.h"

namespace rowhouse::ngram_lm {

/// One trainer of the language model. Step s closes event s + 1 of the word
/// table; the n-gram table's events close the cycles of the schedule.
///
/// A step: pull the words' rows, look the n-grams up in the cycle's cache, form
/// the hidden states, get loss and hidden gradient from the head, push the
/// words' gradients, keep the n-grams' until the cycle ends.
///
/// Thread-compatible.
class LmTrainer {
 public:
  /// `batches` must outlive it. The tables exist.
  ///
  /// Errors: those of `Trainer::Join` and `NgramEmbedding::Create`.
  static absl::StatusOr<std::unique_ptr<LmTrainer>> Join(
      const client::Cluster& cluster, const Batches& batches, int32_t rank,
      int32_t trainer_count, const Recipe& recipe);

  /// Trains on the next step's batch of this rank; steps in order. Returns the
  /// mean loss of its tokens, before the update.
  absl::StatusOr<double> Step(int64_t step);

  /// Waits until every event is applied on every shard.
  absl::Status Finish();

  /// Mean loss over the scored tokens of `blocks`, as of the steps so far.
  /// Between two steps.
  absl::StatusOr<double> Evaluate(std::span<const std::vector<int32_t>> blocks);

  /// The trainers it is made of; tests set how they send.
  client::Trainer& words() { return *words_; }
  client::Trainer& ngrams() { return *ngrams_; }

  int64_t pulled_row_count() const { return pulled_row_count_; }

 private:
  LmTrainer(const Batches& batches, const Recipe& recipe, int64_t dim);

  bool EndsCycle(int64_t step) const;
  absl::Status BeginCycle(int64_t first_step);
  absl::Status EndCycle(int64_t step);
  absl::StatusOr<std::vector<float>> NgramRows(client::Tokens tokens);
  absl::Status Contribute(int64_t step, const client::RowSet& rows,
                          std::span<const float> gradients);
  std::vector<std::vector<int32_t>> CycleTokens(int64_t first_step) const;
  absl::StatusOr<double> EvaluateBlock(std::span<const int32_t> block,
                                       std::span<const Bf16> word_rows,
                                       int64_t& scored_count);

  const Batches& batches_;
  const Recipe recipe_;
  const int64_t dim_;
  const client::RowAdamSchedule schedule_;
  const ContextModel model_;
  int32_t rank_ = 0;
  int32_t trainer_count_ = 0;
  std::unique_ptr<client::Trainer> words_;
  std::unique_ptr<client::Trainer> ngrams_;
  std::unique_ptr<client::LmHead> head_;
  std::unique_ptr<client::NgramEmbedding> embedding_;
  std::vector<std::vector<int32_t>> next_cycle_;  // Tokens, by step.
  int64_t next_step_ = 0;
  int64_t ngram_event_ = 0;  // Closed so far.
  int64_t pulled_row_count_ = 0;
};

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LM_TRAINER_H_
