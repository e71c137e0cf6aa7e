#include "client/push_log/part_reader.h"

#include <cstdint>
#include <utility>

#include "client/internal/record_convert.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::RecordedPart;

template <typename Values>
void Append(const Values& from, Values& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// A target is known where its row is; class weights are those of each shard's
// rows; the rest is the same on every shard and comes with the first.
void AddTokens(const RecordedPart& piece, bool full, RecordedPart& whole) {
  for (size_t i = 0; i < piece.ids.size(); ++i) {
    if (piece.ids[i] >= 0) whole.ids[piece.first_item + i] = piece.ids[i];
  }
  if (!full) return;
  Append(piece.payload, whole.payload);
  Append(piece.max_logits, whole.max_logits);
  Append(piece.exp_sums, whole.exp_sums);
  Append(piece.upstream, whole.upstream);
  Append(piece.target, whole.target);
  Append(piece.smoothing, whole.smoothing);
}

}  // namespace

absl::StatusOr<RecordedPart> ReadPart(const PartPlace& place,
                                      LogReader& reader) {
  const int64_t back = reader.offset();
  RecordedPart whole;
  whole.rank = place.rank;
  whole.part = place.part;
  whole.head = place.head;
  whole.item_count = place.item_count;
  if (place.head) whole.ids.assign(place.item_count, -1);
  log::v1::LogRecord record;
  for (const int64_t offset : place.offsets) {
    ROWHOUSE_RETURN_IF_ERROR(reader.Seek(offset));
    ROWHOUSE_ASSIGN_OR_RETURN(const bool found, reader.Next(record));
    if (!found || !record.has_part()) {
      return reader.DamageAt(offset, "the part has gone since it was found");
    }
    ROWHOUSE_ASSIGN_OR_RETURN(
        const RecordedPart piece,
        internal::TakeFromProto(*record.mutable_part()->mutable_part()));
    if (place.head) {
      const bool full = record.part().shard() == 0;
      if (full) whole.hidden_dtype = piece.hidden_dtype;
      whole.softcap = piece.softcap;
      Append(piece.class_weights, whole.class_weights);
      AddTokens(piece, full, whole);
    } else {
      Append(piece.ids, whole.ids);
      Append(piece.payload, whole.payload);
    }
  }
  ROWHOUSE_RETURN_IF_ERROR(reader.Seek(back));
  return whole;
}

}  // namespace rowhouse::client::push_log
