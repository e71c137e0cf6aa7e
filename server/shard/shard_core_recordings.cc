// Recordings of applied events.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::Status ShardCore::RewrittenError(std::string_view what) const {
  return wire::Error(
      absl::StatusCode::kAborted, wire::reasons::kTableRewritten,
      absl::StrCat(absl::string_view(what.data(), what.size()), spec_.table,
                   ", which ends recordings and checkpoints; begin anew"),
      {{"table", spec_.table}});
}

absl::Status ShardCore::CheckRecording(const RecordingRequest& request) const {
  ROWHOUSE_RETURN_IF_ERROR(recordings_.CheckRoom());
  if (request.last_event.has_value() &&
      *request.last_event <= events_.applied()) {
    return EventPastError("the recording is to end with event",
                          *request.last_event, events_.applied());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Recording>> ShardCore::OpenRecording(
    RecordingRequest request, std::shared_ptr<Call> call) {
  recordings_.EndCancelled();
  ROWHOUSE_RETURN_IF_ERROR(CheckRecording(request));
  RecordingStart start;
  start.event = events_.applied();
  start.arithmetic = absl::StrCat(backend_.Description(), "; head blocks of ",
                                  limits_.head_blocks.token_count, " tokens, ",
                                  limits_.head_blocks.row_count, " rows");
  start.trainer_counts = events_.trainer_counts().changes();
  if (request.digest) {
    ROWHOUSE_ASSIGN_OR_RETURN(start.digest, DigestNow());
  }
  auto recording = std::make_shared<Recording>(
      spec_, backend_, std::move(request), std::move(call), std::move(start));
  recordings_.Add(recording);
  return recording;
}

void ShardCore::Record(const EventCommit& commit, Contributions contributions) {
  const int64_t event = events_.applied();
  std::optional<ShardDigest> digest;
  if (recordings_.WantsDigest(event)) {
    absl::StatusOr<ShardDigest> taken = DigestNow();
    if (!taken.ok()) return recordings_.EndAll(taken.status());
    digest = *taken;
  }
  for (auto& [rank, contribution] : contributions) {
    for (auto& [number, part] : contribution.parts) part.LetClassWeightsGo();
  }
  const auto recorded = std::make_shared<const RecordedEvent>(
      RecordedEvent{event, commit, events_.trainer_counts().changes(),
                    std::move(contributions), digest});
  recordings_.Record(recorded, SizeBytes(*recorded, spec_));
}

}  // namespace rowhouse::server
