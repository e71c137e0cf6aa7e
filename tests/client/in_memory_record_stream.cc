#include "tests/client/in_memory_record_stream.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "proto/wire/status_macros.h"
#include "server/shard/recording.h"
#include "tests/client/in_memory_convert.h"
#include "tests/client/running_call.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::testing {
namespace {

using client::internal::RecordedEvent;
using client::internal::RecordedPart;
using client::internal::RecordingStart;
using client::internal::RecordMessage;

constexpr int64_t kPieceBytes = 64;  // Few rows, so there are many pieces.

std::vector<client::TrainerCountChange> FromServer(
    const std::vector<server::TrainerCountChange>& changes) {
  std::vector<client::TrainerCountChange> result;
  for (const server::TrainerCountChange& change : changes) {
    result.push_back({change.from_event, change.trainer_count});
  }
  return result;
}

std::optional<client::internal::ShardDigest> FromServer(
    const std::optional<server::ShardDigest>& digest) {
  if (!digest.has_value()) return std::nullopt;
  return client::internal::ShardDigest{digest->event, digest->row_sum,
                                       digest->history_sum};
}

RecordedEvent FromServer(const server::RecordedEvent& event,
                         bool wants_digest) {
  RecordedEvent result;
  result.event = event.event;
  result.commit = rowhouse::testing::FromServer(event.commit);
  for (const auto& [rank, contribution] : event.contributions) {
    result.contributions.push_back(
        {rank, contribution.session,
         static_cast<int32_t>(contribution.parts.size())});
  }
  result.trainer_counts = FromServer(event.trainer_counts);
  if (wants_digest) result.digest = FromServer(event.digest);
  return result;
}

RecordedPart FromServer(server::RecordedPiece piece) {
  RecordedPart part;
  part.rank = piece.trainer_rank;
  part.part = piece.part;
  part.head = piece.head;
  part.item_count = piece.item_count;
  part.first_item = piece.first_item;
  part.ids = std::move(piece.ids);
  part.payload = std::move(piece.payload);
  if (!piece.head) return part;
  part.hidden_dtype = FromKernel(piece.hidden_dtype);
  part.max_logits = std::move(piece.max_logits);
  part.exp_sums = std::move(piece.exp_sums);
  part.upstream = std::move(piece.upstream);
  part.target = std::move(piece.target);
  part.smoothing = std::move(piece.smoothing);
  part.softcap = piece.softcap;
  part.class_weights = std::move(piece.class_weights);
  part.first_class_weight = piece.first_class_weight;
  return part;
}

class InMemoryRecordStream final : public client::internal::RecordStream {
 public:
  InMemoryRecordStream(server::Shard& shard,
                       const client::internal::RecordCall& record,
                       const client::internal::CallContext& context)
      : shard_(shard),
        targets_only_(record.targets_only),
        call_(context, shard) {}

  ~InMemoryRecordStream() override {
    if (recording_ != nullptr) {
      recording_->End(absl::CancelledError("the caller has gone"));
    }
  }

  absl::Status Open(server::RecordingRequest request) {
    Pending<absl::StatusOr<std::shared_ptr<server::Recording>>> opened;
    shard_.OpenRecording(std::move(request), call_.get(), opened.Callback());
    ROWHOUSE_ASSIGN_OR_RETURN(recording_, opened.Wait());
    pieces_.emplace(recording_->Pieces(kPieceBytes, targets_only_));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<RecordMessage>> Read() override {
    if (!std::exchange(started_, true)) return Start();
    if (in_event_) {
      ROWHOUSE_ASSIGN_OR_RETURN(const server::Recording::Event event,
                                recording_->Current());
      server::RecordedPiece piece;
      ROWHOUSE_ASSIGN_OR_RETURN(in_event_, pieces_->Next(*event, piece));
      if (in_event_) return RecordMessage(FromServer(std::move(piece)));
    }
    return NextEvent();
  }

 private:
  RecordMessage Start() const {
    const server::ShardSpec& spec = shard_.spec();
    const server::RecordingStart& start = recording_->start();
    const int64_t first_row = spec.placement.first_row(spec.shard_index);
    return RecordingStart{start.event,
                          first_row,
                          spec.placement.end_row(spec.shard_index) - first_row,
                          start.arithmetic,
                          FromServer(start.trainer_counts),
                          FromServer(start.digest)};
  }

  absl::StatusOr<std::optional<RecordMessage>> NextEvent() {
    Pending<absl::StatusOr<bool>> next;
    recording_->Next(next.Callback());
    ROWHOUSE_ASSIGN_OR_RETURN(in_event_, next.Wait());
    if (!in_event_) return std::nullopt;
    ROWHOUSE_ASSIGN_OR_RETURN(const server::Recording::Event event,
                              recording_->Current());
    return RecordMessage(
        FromServer(*event, recording_->WantsDigest(event->event)));
  }

  server::Shard& shard_;
  const bool targets_only_;
  const RunningCall call_;
  std::shared_ptr<server::Recording> recording_;
  std::optional<server::RecordedPieces> pieces_;
  bool started_ = false;
  bool in_event_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<client::internal::RecordStream>>
OpenInMemoryRecordStream(server::Shard& shard,
                         const client::internal::RecordCall& call,
                         const client::internal::CallContext& context) {
  server::RecordingRequest request;
  request.buffer_bytes = call.buffer_bytes > 0
                             ? call.buffer_bytes
                             : server::Shard::RecordingBytes(shard.spec());
  request.last_event = call.last_event;
  request.digest = call.digest;
  auto stream = std::make_unique<InMemoryRecordStream>(shard, call, context);
  ROWHOUSE_RETURN_IF_ERROR(stream->Open(std::move(request)));
  return stream;
}

}  // namespace rowhouse::testing
