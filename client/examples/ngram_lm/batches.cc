#include "client/examples/ngram_lm/batches.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::ngram_lm {

absl::StatusOr<Batches> Batches::Make(std::span<const int32_t> training,
                                      const BatchOptions& options) {
  if (options.trainer_count < 1 || options.piece_token_count < 1 ||
      options.token_count < 1 ||
      options.token_count % options.piece_token_count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.trainer_count, " trainers with batches of ",
        options.token_count, " tokens in pieces of ", options.piece_token_count,
        "; batches must be whole pieces"));
  }
  Batches batches(training, options);
  if (batches.step_count_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        training.size(), " training tokens, ", options.epochs,
        " epochs; one step takes ", options.token_count * options.trainer_count,
        " and one more"));
  }
  return batches;
}

Batches::Batches(std::span<const int32_t> training, const BatchOptions& options)
    : training_(training),
      options_(options),
      pieces_per_batch_(options.token_count / options.piece_token_count) {
  const int64_t piece_count =
      std::max<int64_t>(static_cast<int64_t>(training.size()) - 1, 0) /
      options.piece_token_count;
  const int64_t pieces_per_step = pieces_per_batch_ * options.trainer_count;
  step_count_ = static_cast<int64_t>(std::max(options.epochs, 0.0) *
                                     static_cast<double>(piece_count) /
                                     static_cast<double>(pieces_per_step));
  std::vector<int64_t> epoch(static_cast<size_t>(piece_count));
  std::iota(epoch.begin(), epoch.end(), 0);
  std::mt19937_64 random(options.seed);
  const auto wanted = static_cast<size_t>(step_count_ * pieces_per_step);
  while (pieces_.size() < wanted) {
    // Not std::shuffle: its order is the library's own.
    for (size_t i = epoch.size(); i > 1; --i) {
      std::swap(epoch[i - 1], epoch[random() % i]);
    }
    const size_t count = std::min(wanted - pieces_.size(), epoch.size());
    pieces_.insert(pieces_.end(), epoch.begin(),
                   epoch.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

Batch Batches::Get(int64_t step, int32_t rank) const {
  const int64_t first =
      (step * options_.trainer_count + rank) * pieces_per_batch_;
  const auto size = static_cast<size_t>(options_.piece_token_count);
  Batch batch;
  for (int64_t i = first; i < first + pieces_per_batch_; ++i) {
    const size_t begin =
        static_cast<size_t>(pieces_[static_cast<size_t>(i)]) * size;
    const auto tokens = training_.subspan(begin, size);
    const auto targets = training_.subspan(begin + 1, size);
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
  }
  return batch;
}

}  // namespace rowhouse::ngram_lm
