#ifndef ROWHOUSE_CLIENT_INTERNAL_RECORD_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_RECORD_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/shard_channel.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// Where a recording begins on a shard.
struct RecordingStart {
  int64_t event = 0;  ///< The last applied; the first recorded is the next.
  int64_t first_row = 0;
  int64_t row_count = 0;
  std::string arithmetic;  ///< What bits of head parts depend on besides them.
  std::vector<TrainerCountChange> trainer_counts;
  std::optional<ShardDigest> digest = std::nullopt;
};

/// What a rank gave to an applied event.
struct RecordedContribution {
  int32_t rank = 0;
  int64_t session = 0;
  int32_t part_count = 0;

  friend bool operator==(const RecordedContribution&,
                         const RecordedContribution&) = default;
};

/// An applied event; its parts follow it.
struct RecordedEvent {
  int64_t event = 0;
  EventCommit commit;
  std::vector<RecordedContribution> contributions;  ///< One a rank, in order.
  /// As they stand after the event; fixed up to two events after it.
  std::vector<TrainerCountChange> trainer_counts;
  std::optional<ShardDigest> digest = std::nullopt;
};

/// Consecutive rows of a push, or tokens of a head call; those of a part follow
/// one another. An empty part is one empty piece.
struct RecordedPart {
  int32_t rank = 0;
  int32_t part = 0;
  bool head = false;       ///< Tokens; else rows.
  int64_t item_count = 0;  ///< Of the whole part on this shard.
  int64_t first_item = 0;
  /// Row ids, or targets: -1 for the ignored one and for one of another shard.
  std::vector<int64_t> ids;
  std::string payload;  ///< [_, dim]: gradients, or hidden states.
  // Of tokens: a value each.
  DType hidden_dtype = DType::kBf16;
  std::vector<float> max_logits = {};
  std::vector<float> exp_sums = {};
  std::vector<float> upstream = {};
  std::vector<float> target = {};     ///< Of calls with coefficients; so are
  std::vector<float> smoothing = {};  ///< these.
  float softcap = 0.0F;               ///< Of the part.
  /// Of rows of the shard, from `first_class_weight` on. A piece with some has
  /// nothing else, and comes before the part's tokens.
  std::vector<float> class_weights = {};
  int64_t first_class_weight = 0;
};

using RecordMessage = std::variant<RecordingStart, RecordedEvent, RecordedPart>;

/// The events of one shard, as they are applied. Destroying it ends the
/// recording.
///
/// Thread-compatible.
class RecordStream {
 public:
  virtual ~RecordStream() = default;

  /// The next message, for which it waits: first the start, then events, each
  /// followed by its parts, by rank and number. Nothing after `last_event`.
  /// Errors are the server's, and are final.
  virtual absl::StatusOr<std::optional<RecordMessage>> Read() = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_RECORD_STREAM_H_
