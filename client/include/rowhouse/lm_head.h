#ifndef ROWHOUSE_LM_HEAD_H_
#define ROWHOUSE_LM_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

namespace internal {
class HeadLossCore;
class TrainerCore;
}  // namespace internal

/// Tokens of one head call, T of them; T = 0 is valid. Hidden states, targets
/// and the hidden gradient may be in the GPU's memory, as with `Trainer`; all
/// else is in the host's.
struct HeadBatch {
  std::span<const std::byte> hidden;  ///< [T, dim], row-major, `hidden_dtype`.
  DType hidden_dtype = DType::kBf16;  ///< kBf16, kFp32 or kFp16.
  /// [T]: row ids of the table, or the ignored index.
  std::span<const int64_t> targets;
};

/// How the tokens' losses become one.
enum class LossReduction : uint8_t {
  kNone = 1,  ///< They do not: each token has an upstream gradient of its own.
  kSum = 2,
  /// The sum divided by a token count; with class weights, the sum of all but
  /// the z-loss by the sum of the targets' weights instead.
  kMean = 3,
};

/// What a loss has beside plain cross entropy. With s = `label_smoothing`, V
/// the table's rows, w the class weights, lse the log of the sum of e^logit and
/// y the target, a token that is not ignored has the loss
///
///   (1 - s) * w[y] * (lse - logit[y])
///   + s / V * sum over the rows v of w[v] * (lse - logit[v])
///   + z_loss * lse^2
///
/// The first two lines are PyTorch's cross_entropy of `weight` and
/// `label_smoothing`.
struct LossTerms {
  double label_smoothing = 0;  ///< In [0, 1).
  double z_loss = 0;           ///< Finite, at least 0.
  /// Logits become `softcap * tanh(logit / softcap)`; finite, above 0.
  std::optional<float> softcap = std::nullopt;
  /// One for each row of the table, finite, at least 0; or empty: 1 each. The
  /// memory must stay, unchanged, as long as the loss. They are sent to the
  /// shards only with label smoothing.
  std::span<const float> class_weights = {};
  /// Whether to tell each token's most likely row.
  bool predict = false;
};

struct HeadOptions {
  /// Required, at least 1: the event that the weight gradient is for. The
  /// weights are those of the event before, for which the call waits.
  int64_t event = 0;
  /// Number of the part within this trainer's contribution, as for a push:
  /// left out, it is the next one, and no other part of the event may begin
  /// before this call's `Backward`, or its end, is through.
  std::optional<int32_t> part = std::nullopt;
  /// Targets equal to it are left out of the loss and of all gradients.
  int64_t ignore_index = -100;
  LossReduction reduction = LossReduction::kMean;
  /// kMean: what the sum is divided by, as the tokens of all trainers; left
  /// out, this call's tokens that are not ignored. 0 is taken as 1.
  std::optional<int64_t> mean_token_count = std::nullopt;
  /// kMean with class weights: what all but the z-loss is divided by, as the
  /// weights of all trainers' targets; left out, those of this call's. 0 is
  /// taken as 1.
  std::optional<double> mean_weight_sum = std::nullopt;
  LossTerms terms = {};
  /// The weights get no gradient: the call is no part of the contribution. One
  /// such loss of a trainer goes from its forward to its backward at a time;
  /// another `Forward` waits.
  bool frozen_weights = false;
  absl::Duration timeout = absl::Seconds(60);
};

struct BackwardOptions {
  /// The hidden states' type, which is taken when it is left out, or kFp32.
  std::optional<DType> gradient_dtype = std::nullopt;
  absl::Duration timeout = absl::Seconds(60);
};

struct EvaluateOptions {
  /// Required, at least 1: the weights are those of the event before.
  int64_t event = 0;
  int64_t ignore_index = -100;
  bool token_losses = false;  ///< Whether to return the loss of each token.
  LossTerms terms = {};
  absl::Duration timeout = absl::Seconds(60);
};

struct HeadEvaluation {
  double loss_sum = 0;              ///< As `HeadLoss::loss` with kSum.
  int64_t valid_token_count = 0;    ///< Tokens that are not ignored.
  std::vector<float> token_losses;  ///< [T] if asked for; 0 where ignored.
  double z_loss_sum = 0;            ///< The z-loss's share of `loss_sum`.
  double target_weight_sum = 0;     ///< As `HeadLoss::target_weight_sum`.
  std::vector<int64_t> predicted;   ///< As `HeadLoss::predicted`.
  int64_t correct_token_count = 0;  ///< As `HeadLoss::correct_token_count`.
};

/// The loss of one call, between `LmHead::Forward` and its backward.
///
/// Destroying it without `Backward` closes the call on every shard; its weight
/// gradient is none, and its part number is free again. May outlive its trainer
/// and its head; `Backward` then ends kCancelled.
///
/// Thread-compatible.
class HeadLoss {
 public:
  explicit HeadLoss(std::unique_ptr<internal::HeadLossCore> core);
  ~HeadLoss();

  /// The losses, added in fp64 in token order, the z-loss apart; with kMean
  /// each sum divided by its divisor, in fp64. 0 when all tokens are ignored.
  /// NaN with kNone.
  double loss() const;
  double z_loss() const;  ///< The z-loss's share of `loss()`.

  /// [T] fp32, 0 where ignored: `log(sum) - (target logit - max)` of the
  /// logits' statistics, merged over all slices in fp32; other terms are added
  /// in fp64 before one rounding.
  std::span<const float> token_losses() const;

  /// [T] with `LossTerms::predict`, else empty: the row of each token's largest
  /// logit, of equal ones the first; -1 where the logits are no numbers.
  /// Ignored tokens have theirs too.
  std::span<const int64_t> predicted() const;
  /// Tokens that are not ignored and whose target is predicted; their share of
  /// `valid_token_count()` is the accuracy.
  int64_t correct_token_count() const;

  int64_t valid_token_count() const;  ///< Tokens that are not ignored.
  /// Sum of the class weights of their targets, fp64 in token order.
  double target_weight_sum() const;
  int32_t part() const;  ///< 0 with frozen weights.

  /// Forms the gradient of `upstream * loss()`: fills `hidden_gradient`, [T,
  /// dim], and leaves the weight gradient with the servers as a part of the
  /// contribution. They fold it later, in the order of parts
  /// (`LmHead::FlushWeightGradient`).
  ///
  /// `upstream` may hold a loss scale. Each token that is not ignored gets
  /// fp32(upstream), with kMean fp32(upstream / token count), the division in
  /// fp64; an ignored one exactly 0, and so zeros in its row. With `LossTerms`
  /// the coefficients of its gradient are formed in fp64 and narrowed once. The
  /// slices'
  /// shares are added in fp32 in slice order from +0 and narrowed once, to
  /// nearest even.
  ///
  /// The hidden states are read again where a shard has lost the call. Once
  /// only; but after a fault the same call again is safe and counts once.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_SHAPE, BAD_DTYPE: of `hidden_gradient`;
  ///                        BAD_COUNT: the reduction takes the other form;
  ///                        NOT_FINITE: `upstream`, or a merged statistic.
  ///   kFailedPrecondition  OUT_OF_ORDER: it has succeeded before. EVENT_PAST:
  ///                        the event was applied meanwhile.
  ///                        CONTRIBUTION_SEALED.
  ///   kAlreadyExists       PART_DIFFERS: the part has other content.
  ///                        `Trainer::Discard` the event before another call
  ///                        takes the place of one that failed half-way.
  ///   kResourceExhausted   TOKENS_FULL, PARTS_FULL.
  ///   kAborted             FENCED.
  ///   kInternal            STATISTICS_DIFFER: a call that was made again has
  ///                        other statistics; did the hidden states change?
  absl::Status Backward(double upstream, std::span<std::byte> hidden_gradient,
                        const BackwardOptions& options = {});

  /// The same with kNone: of the sum of `upstream[t] * token_losses()[t]`;
  /// `upstream` is [T], and counts as 0 where the target is ignored.
  ///
  /// Errors: as above; BAD_COUNT also where `upstream` is not [T].
  absl::Status Backward(std::span<const float> upstream,
                        std::span<std::byte> hidden_gradient,
                        const BackwardOptions& options = {});

 private:
  std::unique_ptr<internal::HeadLossCore> core_;
};

/// The language-model head of a dense table: linear cross entropy over its
/// rows, the vocabulary, of which each shard holds a slice. The logits are
/// `hidden x W^T`, plus the table's bias if it has one, capped where the loss
/// has a softcap, and exist on the servers only.
///
///   auto loss = (*head)->Forward({hidden, DType::kBf16, targets},
///                                {.event = event});
///   (*loss)->Backward(1.0, hidden_gradient);
///   ...                                   // Backward of the layers below.
///   (*head)->FlushWeightGradient();       // If it is to be known folded.
///   trainer->Seal(event);
///
/// Calls of several micro-batches add up, and so do pushes of embedding
/// gradients to the same table: weights that embedding and head share.
///
/// A call that breaks on a shard is opened and computed there again, until its
/// timeout; its part counts once.
///
/// Thread-safe.
class LmHead {
 public:
  /// Errors:
  ///   kFailedPrecondition  TABLE_KIND: the table is sparse, or has no head
  ///                        (`max_head_token_count` is 0).
  static absl::StatusOr<std::unique_ptr<LmHead>> Create(const Trainer& trainer);

  explicit LmHead(std::shared_ptr<internal::TrainerCore> core);
  ~LmHead();

  /// Computes the loss of a batch on the weights as of `options.event - 1`, the
  /// same event on every slice. Returns before anything is contributed.
  ///
  /// The batch's memory must stay, unchanged, as long as the loss. The shards
  /// keep a call until then, within limits: few may be open at once.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_SHAPE, BAD_COUNT, BAD_DTYPE, BAD_EVENT;
  ///                        BAD_SCALAR: one of `LossTerms`; NOT_FINITE: a
  ///                        hidden state.
  ///   kOutOfRange          ROW_OUT_OF_TABLE: names the first bad target.
  ///   kFailedPrecondition  EVENT_AHEAD, EVENT_PAST, CONTRIBUTION_SEALED;
  ///                        PART_IN_FLIGHT: name the part.
  ///   kResourceExhausted   TOKENS_FULL, PARTS_FULL; HEAD_CALLS_OPEN: too many
  ///                        are open; CLASS_WEIGHTS_FULL: a shard holds too
  ///                        many that differ.
  ///   kAborted             FENCED.
  ///   kDeadlineExceeded    the event before did not come in time.
  absl::StatusOr<std::unique_ptr<HeadLoss>> Forward(const HeadBatch& batch,
                                                    const HeadOptions& options);

  /// Computes the losses alone; leaves nothing on the servers.
  ///
  /// Errors as `Forward`.
  absl::StatusOr<HeadEvaluation> Evaluate(const HeadBatch& batch,
                                          const EvaluateOptions& options);

  /// Waits until the weight gradient of the oldest `Backward` that has not been
  /// flushed is in the gradient buffer of every shard, which it enters after
  /// the hidden gradient was answered. One call for each `Backward` of the
  /// trainer but those with frozen weights, first in, first out.
  ///
  /// Optional: seals and commits wait for nothing of it, and an event that is
  /// applied has all its gradients. Parts are folded in the order (part, rank):
  /// it may wait for parts, or seals, of other ranks. After a fault the same
  /// weight gradient is waited for again.
  ///
  /// Errors:
  ///   kFailedPrecondition  OUT_OF_ORDER: no `Backward` is left to flush;
  ///                        those that were discarded are none.
  ///   kDeadlineExceeded    it was not folded in time.
  absl::Status FlushWeightGradient(const CallOptions& options = {});

 private:
  std::shared_ptr<internal::TrainerCore> core_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_LM_HEAD_H_
