#ifndef ROWHOUSE_SERVER_SHARD_RECORDED_PIECES_H_
#define ROWHOUSE_SERVER_SHARD_RECORDED_PIECES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/events.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// An event that was applied: all that it takes to apply it again.
struct RecordedEvent {
  int64_t event = 0;
  EventCommit commit;
  std::vector<TrainerCountChange> trainer_counts;  ///< As they stand after it.
  Contributions contributions;                     ///< All sealed.
  std::optional<ShardDigest> digest;               ///< As of it, if wanted.
};

/// Bytes of an event's rows, slots, head operands and class weights, equal ones
/// once.
int64_t SizeBytes(const RecordedEvent& event, const ShardSpec& spec);

/// Consecutive rows or tokens of a part, in host memory.
struct RecordedPiece {
  int32_t trainer_rank = 0;
  int32_t part = 0;
  bool head = false;       ///< Tokens of a head call; else rows of a push.
  int64_t item_count = 0;  ///< Rows or tokens of the whole part.
  int64_t first_item = 0;  ///< Position of the first of this piece.
  /// Global row ids, or targets: -1 for the ignored one, and for one of another
  /// shard.
  std::vector<int64_t> ids;
  /// [ids.size(), dim]: gradient rows, or hidden states, of `hidden_dtype`.
  std::string payload;
  kernels::DType hidden_dtype = kernels::DType::kBf16;
  std::vector<float> max_logits;  ///< A value a token; so are the next two.
  std::vector<float> exp_sums;
  std::vector<float> upstream;
  std::vector<float> target;  ///< Coefficients, of a call that had them; so are
  std::vector<float> smoothing;  ///< these.
  float softcap = 0.0F;          ///< Of the part.
  /// Of rows of the shard from `first_class_weight` on; a piece that has some
  /// has nothing else, and comes before the part's tokens.
  std::vector<float> class_weights;
  int64_t first_class_weight = 0;
};

/// Goes through the parts of one event, by rank and number, in pieces; an empty
/// part is one empty piece.
///
/// Thread-compatible; works off the lane.
class RecordedPieces {
 public:
  /// Pieces have at most `max_bytes`, or one item. With `targets_only` pieces
  /// of head parts hold the targets alone. `spec` and `backend` must outlive
  /// it.
  RecordedPieces(const ShardSpec& spec, kernels::Backend& backend,
                 int64_t max_bytes, bool targets_only)
      : spec_(spec),
        backend_(backend),
        max_bytes_(max_bytes),
        targets_only_(targets_only) {}

  /// Fills `piece` with the next one; false after the last, which begins anew.
  /// `event` is the same until then.
  ///
  /// Errors: the backend's.
  absl::StatusOr<bool> Next(const RecordedEvent& event, RecordedPiece& piece);

 private:
  const StagedPart* NextPart(const RecordedEvent& event);
  absl::Status ReadIds(const int64_t* slots, RecordedPiece& piece) const;
  absl::Status ReadRows(const StagedPart& part, int64_t count,
                        RecordedPiece& piece) const;
  absl::Status ReadTokens(const HeadOperands& head, int64_t count,
                          RecordedPiece& piece) const;
  absl::Status ReadClassWeights(const HeadOperands& head, RecordedPiece& piece);
  int64_t ItemBytes(const StagedPart& part) const;

  const ShardSpec& spec_;
  kernels::Backend& backend_;
  const int64_t max_bytes_;
  const bool targets_only_;
  int32_t rank_ = 0;
  int32_t part_ = -1;  // Of `rank_`; -1 before its first.
  int64_t next_ = 0;   // The part's next item; 0 with `left_` 0: go on.
  int64_t left_ = 0;   // Its items to come.
  int64_t next_class_weight_ = 0;
  int64_t class_weights_left_ = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_RECORDED_PIECES_H_
