#ifndef ROWHOUSE_CLIENT_INTERNAL_NGRAM_CORE_H_
#define ROWHOUSE_CLIENT_INTERNAL_NGRAM_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/ngram_cache.h"
#include "kernels/backend.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/row_set.h"
#include "rowhouse/trainer.h"

namespace rowhouse::client::internal {

/// What stands behind an `NgramEmbedding`: the order of its calls.
///
/// Rows that were prefetched land in the cache while the cycle before still
/// owns it: they cannot arrive before that cycle's event is applied, and it is
/// applied only after this trainer has sealed it.
///
/// Thread-compatible.
class NgramCore {
 public:
  NgramCore(Trainer& trainer, NgramOptions options,
            std::unique_ptr<NgramCache> cache)
      : trainer_(trainer),
        options_(std::move(options)),
        cache_(std::move(cache)) {}

  const NgramCache& cache() const { return *cache_; }
  const NgramOptions& options() const { return options_; }

  absl::Status StartCycle(int64_t first_step, std::span<const Tokens> steps);
  absl::Status PrefetchNextCycle(std::span<const Tokens> steps);
  absl::Status Embed(Tokens tokens, std::span<std::byte> out);
  absl::Status AccumulateGradient(Tokens tokens,
                                  std::span<const std::byte> gradient);
  absl::StatusOr<int64_t> FinishCycle(std::optional<CommitDecision> decision);
  absl::Status DropCycle();
  absl::Status PullForEvaluation(std::span<const Tokens> batches);
  absl::Status RestoreAfterEvaluation();

 private:
  /// What a step handed in.
  struct HeldStep {
    NgramPlaces places;
    BackendArray<std::byte> gradient;
  };

  struct Cycle {
    int64_t last_step = 0;
    int64_t step_count = 0;
    int64_t event = 0;  ///< That it ends with.
    NgramWant want;
    RowSet rows;
    std::vector<HeldStep> held;
    bool finishing = false;  ///< The event may be sealed.
  };

  struct NextCycle {
    std::vector<std::vector<int32_t>> tokens;  ///< By step.
    NgramWant want;
    PendingPull pull;
    std::optional<RowSet> rows;  ///< Once landed.
  };

  enum class Contents : uint8_t {
    kNothing = 0,
    kLive = 1,  ///< The cycle's rows, or those that were prefetched.
    kEvaluation = 2,
    kDisturbed = 3,  ///< An evaluation that did not land.
  };

  absl::Status CheckSteps(int64_t first_step, int64_t step_count) const;
  absl::Status CheckEmbed() const;
  absl::Status CheckFinish(bool has_decision) const;
  absl::StatusOr<NgramWant> WantList(std::span<const Tokens> steps,
                                     int64_t event);
  absl::StatusOr<bool> IsNext(std::span<const Tokens> steps) const;
  absl::Status LandNext();
  absl::Status PullInto(const NgramWant& want, int64_t event, bool training,
                        RowSet& rows);
  HeldStep TakeStep();
  void EndCycle();
  absl::StatusOr<std::span<const std::byte>> CycleGradient();

  Trainer& trainer_;
  const NgramOptions options_;
  const std::unique_ptr<NgramCache> cache_;
  Contents contents_ = Contents::kNothing;
  std::optional<Cycle> cycle_;
  NgramWant evaluation_want_;
  NgramPlaces embedding_;  // Of the step that is embedded.
  std::vector<HeldStep>
      spare_;  // Of cycles before; their memory is used again.
  std::optional<NextCycle> next_;  // Last: its pull writes to the cache.
};

/// An embedding on `backend`.
absl::StatusOr<std::unique_ptr<NgramEmbedding>> MakeNgramEmbedding(
    Trainer& trainer, const NgramOptions& options,
    std::shared_ptr<kernels::Backend> backend);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_NGRAM_CORE_H_
