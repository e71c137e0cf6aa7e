#ifndef ROWHOUSE_NGRAM_EMBEDDING_H_
#define ROWHOUSE_NGRAM_EMBEDDING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/ngram_schedule.h"
#include "rowhouse/observer.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

namespace internal {
class NgramCore;
}  // namespace internal

/// Tokens of one step of this trainer, [T]. T = 0 and T = 1 are valid.
using Tokens = std::span<const int32_t>;

struct NgramOptions {
  /// In place of the table's own n-gram metadata.
  std::optional<NgramMetadata> sign_pool = std::nullopt;
  /// Rows of the cache, the most that a cycle or an evaluation may read:
  /// 2 * cycle steps * T always suffices. Costs that many rows of memory.
  int64_t cache_row_count = 524288;
  /// Element type of `AccumulateGradient`, kBf16 or kFp32; the table's row type
  /// if left out.
  std::optional<DType> gradient_dtype = std::nullopt;
  /// Whether an event follows a step.
  std::function<bool(int64_t step)> is_update = [](int64_t step) {
    return RowAdamSchedule().IsUpdate(step);
  };
  /// Cache and arithmetic are on the GPU that `ClusterOptions::device_index`
  /// names: its memory holds the cache's rows, the gradients of a cycle's steps
  /// as they were handed in, and their sums; and a bit a row of the table.
  bool on_device = false;
  int thread_count = 0;  ///< Of a host's arithmetic; 0: one per core.
  /// Of every pull and push, the wait for an event included.
  absl::Duration timeout = absl::Minutes(10);
  Observer observer = nullptr;  ///< Told of the work of the calling thread.
};

/// The hashed n-gram embedding of a table, read and trained in cycles.
///
/// A cycle is the steps from one event to the next. Its rows are pulled once,
/// into a cache; steps embed from the cache and hand in gradients; the cycle's
/// end sums them per row, pushes them, and seals the event. So:
///
///   StartCycle, (Embed, AccumulateGradient) a step, FinishCycle, StartCycle...
///
/// `PrefetchNextCycle`, before the end, sends the ids of the next cycle ahead:
/// its rows land as soon as the event is applied. An evaluation borrows the
/// cache, in a cycle or between two.
///
/// The trainer contributes nothing else to its events.
///
/// Calls out of order are kFailedPrecondition and change nothing. Calls that
/// failed otherwise may be repeated. Buffers are row-major, in the host's
/// memory or, with `NgramOptions::on_device`, the GPU's as with `Trainer`;
/// tokens too.
///
/// Thread-compatible.
class NgramEmbedding {
 public:
  /// Allocates the cache. `trainer` must outlive the embedding.
  ///
  /// Errors:
  ///   kInvalidArgument    the table has no n-gram metadata, or too many rows.
  ///   kFailedPrecondition `on_device`, but the cluster names no GPU.
  ///   kResourceExhausted  no memory for the cache.
  static absl::StatusOr<std::unique_ptr<NgramEmbedding>> Create(
      Trainer& trainer, const NgramOptions& options = {});

  explicit NgramEmbedding(std::unique_ptr<internal::NgramCore> core);
  ~NgramEmbedding();

  /// Row ids of `tokens`: T bigram ids, then T trigram ids.
  absl::StatusOr<std::vector<int64_t>> RowIds(Tokens tokens) const;

  /// The sorted distinct row ids that `steps` read.
  absl::StatusOr<std::vector<int64_t>> WantList(
      std::span<const Tokens> steps) const;

  /// The last step of the cycle that `step` is in.
  ///
  /// REQUIRES: an update follows some later step.
  int64_t CycleEnd(int64_t step) const;

  /// Begins the cycle of `steps`, of which the first is step `first_step`: its
  /// rows, as of the last event, are in the cache when it returns.
  ///
  /// Errors:
  ///   kFailedPrecondition  a cycle is active; the cache holds an evaluation;
  ///                        other steps were prefetched.
  ///   kInvalidArgument     an event falls before the last of the steps; more
  ///                        distinct rows than the cache has.
  ///   Those of `Trainer::Pull`.
  absl::Status StartCycle(int64_t first_step, std::span<const Tokens> steps);

  /// Sends the row ids of the cycle after the active one. Returns at once.
  ///
  /// Errors:
  ///   kFailedPrecondition  no cycle is active; one is prefetched already.
  ///   kInvalidArgument     as `StartCycle`.
  absl::Status PrefetchNextCycle(std::span<const Tokens> steps);

  /// `out[t] = row(bigram t) * sign + row(trigram t) * sign`, rounded once:
  /// [T, dim] of the row type, from what the cache holds.
  ///
  /// Errors:
  ///   kFailedPrecondition  the cache holds neither a cycle nor an evaluation.
  ///   kInvalidArgument     `out` has another size.
  ///   kNotFound            ROW_NOT_CACHED: names a row that was not pulled.
  absl::Status Embed(Tokens tokens, std::span<std::byte> out);

  /// Hands in the gradient of a step's embedding, [T, dim]; it is copied. Steps
  /// in order: the order of summation.
  ///
  /// Errors:
  ///   As `Embed`; kFailedPrecondition while an evaluation has the cache, or
  ///   when each step of the cycle has handed in.
  absl::Status AccumulateGradient(Tokens tokens,
                                  std::span<const std::byte> gradient);

  /// Ends the cycle: pushes its gradient, seals the event, and, as rank 0,
  /// commits it with `decision`. Returns the event.
  ///
  /// Errors:
  ///   kFailedPrecondition  no cycle is active; no step has handed in; no event
  ///                        follows the last step (`DropCycle`).
  ///   kInvalidArgument     a decision of another rank, or none of rank 0.
  ///   Those of `Trainer::Push` and `SealAndCommit`.
  absl::StatusOr<int64_t> FinishCycle(
      std::optional<CommitDecision> decision = std::nullopt);

  /// Ends the cycle without an event, as after the last steps of a run: its
  /// gradient, and what was prefetched, are dropped. After a `FinishCycle` that
  /// was refused (NOT_FINITE, say) it drops what some shards had accepted; the
  /// event stays this trainer's to seal.
  absl::Status DropCycle();

  /// Pulls the rows of `batches` into the cache, as of the last event, in place
  /// of the cycle's; `Embed` reads them. May be repeated for other batches.
  /// Between two cycles it waits for what was prefetched.
  ///
  /// Errors:
  ///   kFailedPrecondition  `FinishCycle` has begun and not succeeded.
  ///   kInvalidArgument     as `StartCycle`.
  absl::Status PullForEvaluation(std::span<const Tokens> batches);

  /// Lands the cycle's rows, or those prefetched, again: the same bits.
  ///
  /// Errors:
  ///   kFailedPrecondition  no evaluation has the cache.
  absl::Status RestoreAfterEvaluation();

 private:
  std::unique_ptr<internal::NgramCore> core_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_NGRAM_EMBEDDING_H_
