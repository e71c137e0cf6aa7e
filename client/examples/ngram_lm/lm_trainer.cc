#include "client/examples/ngram_lm/lm_trainer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/ngram_lm/bf16.h"
#include "client/examples/ngram_lm/corpus.h"
#include "client/examples/ngram_lm/tables.h"
#include "rowhouse/adamw.h"

namespace rowhouse::ngram_lm {
namespace {

using client::CommitDecision;
using client::DType;
using client::Tokens;

constexpr int64_t kIgnored = -100;
constexpr int64_t kEvaluationTokens = 1 << 13;  // Of one pull of n-gram rows.

std::vector<Tokens> Views(const std::vector<std::vector<int32_t>>& steps) {
  return {steps.begin(), steps.end()};
}

std::vector<int64_t> RowIds(std::span<const int32_t> ids) {
  return {ids.begin(), ids.end()};
}

std::span<std::byte> Bytes(std::span<Bf16> values) {
  return std::as_writable_bytes(values);
}

// The longest cycle's rows; an evaluation takes as many at a time.
int64_t CacheRowCount(int64_t step_token_count) {
  return std::max<int64_t>(2 * kLongestCycle * step_token_count,
                           2 * kEvaluationTokens);
}

// Of the first blocks, as many as one pull may have; at least one.
size_t GroupSize(std::span<const std::vector<int32_t>> blocks) {
  size_t count = 1;
  auto tokens = static_cast<int64_t>(blocks.front().size());
  for (; count < blocks.size(); ++count) {
    tokens += static_cast<int64_t>(blocks[count].size());
    if (tokens > kEvaluationTokens) break;
  }
  return count;
}

}  // namespace

LmTrainer::LmTrainer(const Batches& batches, const Recipe& recipe, int64_t dim)
    : batches_(batches),
      recipe_(recipe),
      dim_(dim),
      schedule_(NgramSchedule(recipe, batches.step_count())),
      model_(dim, recipe.averages, /*sign_seed=*/1) {}

absl::StatusOr<std::unique_ptr<LmTrainer>> LmTrainer::Join(
    const client::Cluster& cluster, const Batches& batches, int32_t rank,
    int32_t trainer_count, const Recipe& recipe) {
  auto words = client::Trainer::Join(cluster, kWordTable, rank);
  if (!words.ok()) return words.status();
  auto ngrams = client::Trainer::Join(cluster, kNgramTable, rank);
  if (!ngrams.ok()) return ngrams.status();
  auto head = client::LmHead::Create(**words);
  if (!head.ok()) return head.status();
  std::unique_ptr<LmTrainer> trainer(
      new LmTrainer(batches, recipe, (*words)->table().spec.dim));
  client::NgramOptions options;
  options.is_update = [own = trainer.get()](int64_t step) {
    return own->EndsCycle(step);
  };
  options.gradient_dtype = DType::kBf16;
  options.cache_row_count = CacheRowCount(batches.token_count());
  options.thread_count = 1;
  auto embedding = client::NgramEmbedding::Create(**ngrams, options);
  if (!embedding.ok()) return embedding.status();
  trainer->rank_ = rank;
  trainer->trainer_count_ = trainer_count;
  trainer->words_ = *std::move(words);
  trainer->ngrams_ = *std::move(ngrams);
  trainer->head_ = *std::move(head);
  trainer->embedding_ = *std::move(embedding);
  return trainer;
}

// The last step ends the last cycle, so that no gradient is left over.
bool LmTrainer::EndsCycle(int64_t step) const {
  return schedule_.IsUpdate(step) || step == batches_.step_count() - 1;
}

std::vector<std::vector<int32_t>> LmTrainer::CycleTokens(
    int64_t first_step) const {
  std::vector<std::vector<int32_t>> steps;
  for (int64_t step = first_step; step < batches_.step_count(); ++step) {
    steps.push_back(batches_.Get(step, rank_).tokens);
    if (EndsCycle(step)) break;
  }
  return steps;
}

absl::Status LmTrainer::BeginCycle(int64_t first_step) {
  if (next_cycle_.empty()) next_cycle_ = CycleTokens(first_step);
  absl::Status status = embedding_->StartCycle(first_step, Views(next_cycle_));
  if (!status.ok()) return status;
  const auto wanted = embedding_->WantList(Views(next_cycle_));
  if (!wanted.ok()) return wanted.status();
  pulled_row_count_ += static_cast<int64_t>(wanted->size());
  // The ids of the next one travel while this one trains.
  next_cycle_ =
      CycleTokens(first_step + static_cast<int64_t>(next_cycle_.size()));
  if (next_cycle_.empty()) return absl::OkStatus();
  return embedding_->PrefetchNextCycle(Views(next_cycle_));
}

absl::Status LmTrainer::EndCycle(int64_t step) {
  std::optional<CommitDecision> decision;
  if (rank_ == 0) decision = schedule_.Scalars(step, ngram_event_ + 1);
  const auto event = embedding_->FinishCycle(std::move(decision));
  if (!event.ok()) return event.status();
  ngram_event_ = *event;
  return absl::OkStatus();
}

absl::StatusOr<double> LmTrainer::Step(int64_t step) {
  const Batch batch = batches_.Get(step, rank_);
  const size_t size = batch.tokens.size() * static_cast<size_t>(dim_);
  if (step == 0 || EndsCycle(step - 1)) {
    absl::Status begun = BeginCycle(step);
    if (!begun.ok()) return begun;
  }
  std::vector<Bf16> words(size);
  const auto rows =
      words_->Pull(RowIds(batch.tokens), Bytes(words), {.exact_event = step});
  if (!rows.ok()) return rows.status();
  const auto ngrams = NgramRows(batch.tokens);
  if (!ngrams.ok()) return ngrams.status();
  std::vector<float> wide(size);
  model_.Forward(Widened(words), *ngrams, wide);
  const std::vector<Bf16> hidden = Rounded(wide);

  const std::vector<int64_t> targets = RowIds(batch.targets);
  client::HeadOptions options;
  options.event = step + 1;
  options.mean_token_count =
      trainer_count_ * static_cast<int64_t>(targets.size());
  const auto loss = head_->Forward(
      {std::as_bytes(std::span(hidden)), DType::kBf16, targets}, options);
  if (!loss.ok()) return loss.status();
  std::vector<Bf16> hidden_gradient(size);
  absl::Status status = (*loss)->Backward(1.0, Bytes(hidden_gradient));
  if (!status.ok()) return status;

  status = embedding_->AccumulateGradient(
      batch.tokens, std::as_bytes(std::span(hidden_gradient)));
  if (!status.ok()) return status;
  std::vector<float> gradients(size);
  model_.Backward(Widened(hidden_gradient), gradients);
  status = Contribute(step, *rows, gradients);
  if (status.ok() && EndsCycle(step)) status = EndCycle(step);
  if (!status.ok()) return status;
  next_step_ = step + 1;
  return (*loss)->loss() * trainer_count_;
}

absl::StatusOr<std::vector<float>> LmTrainer::NgramRows(Tokens tokens) {
  std::vector<Bf16> rows(tokens.size() * static_cast<size_t>(dim_));
  const absl::Status status = embedding_->Embed(tokens, Bytes(rows));
  if (!status.ok()) return status;
  return Widened(rows);
}

absl::Status LmTrainer::Contribute(int64_t step, const client::RowSet& rows,
                                   std::span<const float> gradients) {
  const auto pushed =
      words_->Push(step + 1, rows, std::as_bytes(gradients), {.seal = true});
  if (!pushed.ok() || rank_ != 0) return pushed.status();
  return words_->Commit(
      step + 1,
      client::MakeAdamWScalars({.learning_rate = DenseLearningRate(
                                    recipe_, step, batches_.step_count()),
                                .weight_decay = recipe_.weight_decay,
                                .beta1 = recipe_.beta1,
                                .beta2 = recipe_.beta2,
                                .eps = recipe_.eps},
                               step + 1));
}

absl::Status LmTrainer::Finish() {
  absl::Status status = words_->WaitForEvent(next_step_);
  if (status.ok()) status = ngrams_->WaitForEvent(ngram_event_);
  return status;
}

absl::StatusOr<double> LmTrainer::Evaluate(
    std::span<const std::vector<int32_t>> blocks) {
  std::vector<int64_t> all(static_cast<size_t>(words_->table().spec.row_count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Bf16> word_rows(all.size() * static_cast<size_t>(dim_));
  const auto rows = words_->Pull(
      all, Bytes(word_rows), {.exact_event = next_step_, .training = false});
  if (!rows.ok()) return rows.status();
  double sum = 0;
  int64_t scored_count = 0;
  while (!blocks.empty()) {
    const auto group = blocks.first(GroupSize(blocks));
    blocks = blocks.subspan(group.size());
    const absl::Status pulled = embedding_->PullForEvaluation(
        std::vector<Tokens>(group.begin(), group.end()));
    if (!pulled.ok()) return pulled;
    for (const std::vector<int32_t>& block : group) {
      const auto loss = EvaluateBlock(block, word_rows, scored_count);
      if (!loss.ok()) return loss.status();
      sum += *loss;
    }
  }
  // After the last step there is nothing to go on with.
  if (next_step_ < batches_.step_count()) {
    const absl::Status restored = embedding_->RestoreAfterEvaluation();
    if (!restored.ok()) return restored;
  }
  return scored_count == 0 ? 0 : sum / static_cast<double>(scored_count);
}

absl::StatusOr<double> LmTrainer::EvaluateBlock(std::span<const int32_t> block,
                                                std::span<const Bf16> word_rows,
                                                int64_t& scored_count) {
  const auto row_size = static_cast<size_t>(dim_);
  std::vector<Bf16> words;
  words.reserve(block.size() * row_size);
  for (const int32_t token : block) {
    const auto row =
        word_rows.subspan(static_cast<size_t>(token) * row_size, row_size);
    words.insert(words.end(), row.begin(), row.end());
  }
  const auto ngrams = NgramRows(block);
  if (!ngrams.ok()) return ngrams.status();
  std::vector<float> wide(words.size());
  model_.Forward(Widened(words), *ngrams, wide);
  const std::vector<Bf16> hidden = Rounded(wide);
  // Position t predicts the word at t + 1; the last one nothing.
  std::vector<int64_t> targets = RowIds(block.subspan(1));
  targets.push_back(kIgnored);
  std::fill_n(targets.begin(), kFirstScored - 1, kIgnored);
  const auto evaluation =
      head_->Evaluate({std::as_bytes(std::span(hidden)), DType::kBf16, targets},
                      {.event = next_step_ + 1, .ignore_index = kIgnored});
  if (!evaluation.ok()) return evaluation.status();
  scored_count += evaluation->valid_token_count;
  return evaluation->loss_sum;
}

}  // namespace rowhouse::ngram_lm
