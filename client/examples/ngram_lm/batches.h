#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BATCHES_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BATCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::ngram_lm {

struct BatchOptions {
  int32_t trainer_count = 2;
  int64_t token_count = 512;  ///< Of one trainer in one step.
  /// Text in a row; a batch is `token_count / piece_token_count` of them.
  int64_t piece_token_count = 256;
  double epochs = 1;
  uint64_t seed = 1;  ///< Of the order of pieces, `std::mt19937_64`.
};

/// One trainer's tokens of one step. A piece follows another without a mark
/// between them: the first words of one have the last of the other for history.
struct Batch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;  ///< The word after each.
};

/// Which tokens every trainer sees in every step: pieces of the text, each once
/// an epoch, in an order drawn anew for each epoch. The same on every trainer.
///
/// Thread-safe.
class Batches {
 public:
  /// `training` must outlive the batches.
  ///
  /// Errors:
  ///   kInvalidArgument  less than one step; a count below 1; batches that are
  ///                     not whole pieces.
  static absl::StatusOr<Batches> Make(std::span<const int32_t> training,
                                      const BatchOptions& options = {});

  int64_t step_count() const { return step_count_; }
  int64_t token_count() const { return options_.token_count; }

  /// REQUIRES: `step` and `rank` are in range.
  Batch Get(int64_t step, int32_t rank) const;

 private:
  Batches(std::span<const int32_t> training, const BatchOptions& options);

  std::span<const int32_t> training_;
  BatchOptions options_;
  int64_t pieces_per_batch_;
  int64_t step_count_;
  std::vector<int64_t> pieces_;  // In the order of use.
};

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_BATCHES_H_
