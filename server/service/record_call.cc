#include "server/service/record_call.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"

namespace rowhouse::server {
namespace {

absl::StatusOr<RecordingRequest> ToRequest(
    const v1::RecordEventsRequest& request, const ShardSpec& spec) {
  if (request.buffer_bytes() < 0) {
    return FieldError(wire::reasons::kBadCount, "buffer_bytes",
                      request.buffer_bytes(), "at least 0");
  }
  RecordingRequest result;
  result.buffer_bytes = request.buffer_bytes() == 0
                            ? Shard::RecordingBytes(spec)
                            : request.buffer_bytes();
  if (request.has_last_event()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("last_event", request.last_event(), 1));
    result.last_event = request.last_event();
  }
  result.digest = request.digest();
  return result;
}

void Fill(const ShardDigest& digest, v1::RecordedDigest& proto) {
  proto.set_row_sum(static_cast<int64_t>(digest.row_sum));
  proto.set_history_sum(static_cast<int64_t>(digest.history_sum));
}

template <typename Message>
void FillTrainerCounts(const std::vector<TrainerCountChange>& changes,
                       Message& message) {
  for (const TrainerCountChange& change : changes) {
    v1::TrainerCountChange& proto = *message.add_trainer_counts();
    proto.set_from_event(change.from_event);
    proto.set_trainer_count(change.trainer_count);
  }
}

void Fill(const RecordedEvent& event, v1::RecordedEvent& proto) {
  proto.Clear();
  proto.set_event(event.event);
  *proto.mutable_commit() = ToProto(event.commit);
  for (const auto& [rank, contribution] : event.contributions) {
    v1::RecordedContribution& out = *proto.add_contributions();
    out.set_trainer_rank(rank);
    out.set_session(contribution.session);
    out.set_part_count(static_cast<int32_t>(contribution.parts.size()));
  }
  FillTrainerCounts(event.trainer_counts, proto);
}

// Takes the piece's rows.
void Fill(RecordedPiece& piece, v1::RecordedPart& proto) {
  proto.set_trainer_rank(piece.trainer_rank);
  proto.set_part(piece.part);
  if (!piece.head) {
    v1::RecordedRows& rows = *proto.mutable_rows();
    rows.set_row_count(piece.item_count);
    rows.set_first_row(piece.first_item);
    rows.mutable_row_ids()->Assign(piece.ids.begin(), piece.ids.end());
    rows.mutable_rows()->swap(piece.payload);
    return;
  }
  v1::RecordedTokens& tokens = *proto.mutable_tokens();
  tokens.set_token_count(piece.item_count);
  tokens.set_first_token(piece.first_item);
  tokens.set_hidden_dtype(ToProto(piece.hidden_dtype));
  tokens.mutable_targets()->Assign(piece.ids.begin(), piece.ids.end());
  tokens.mutable_max_logits()->Assign(piece.max_logits.begin(),
                                      piece.max_logits.end());
  tokens.mutable_exp_sums()->Assign(piece.exp_sums.begin(),
                                    piece.exp_sums.end());
  tokens.mutable_upstream_gradients()->Assign(piece.upstream.begin(),
                                              piece.upstream.end());
  tokens.mutable_target_coefficients()->Assign(piece.target.begin(),
                                               piece.target.end());
  tokens.mutable_smoothing_coefficients()->Assign(piece.smoothing.begin(),
                                                  piece.smoothing.end());
  tokens.set_softcap(piece.softcap);
  tokens.set_first_class_weight(piece.first_class_weight);
  tokens.mutable_class_weights()->Assign(piece.class_weights.begin(),
                                         piece.class_weights.end());
  tokens.mutable_hidden()->swap(piece.payload);
}

}  // namespace

void RecordCall::Start(TableRegistry& tables,
                       const v1::RecordEventsRequest& request) {
  absl::Status status = active_.admission();
  if (status.ok()) status = Open(tables, request);
  if (!status.ok()) Finish(wire::ToGrpc(status));
}

absl::Status RecordCall::Open(TableRegistry& tables,
                              const v1::RecordEventsRequest& request) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> shard,
                            tables.FindShard(request.table()));
  ROWHOUSE_ASSIGN_OR_RETURN(RecordingRequest recording,
                            ToRequest(request, shard->spec()));
  ROWHOUSE_ASSIGN_OR_RETURN(
      recording.reservation,
      tables.ReserveAside("a recording of " + request.table(),
                          recording.buffer_bytes));
  targets_only_ = request.targets_only();
  active_.Attach(shard);
  active_.BeginWait();
  shard->OpenRecording(
      std::move(recording), active_.call(),
      [this](absl::StatusOr<std::shared_ptr<Recording>> opened) {
        OnOpened(std::move(opened));
      });
  return absl::OkStatus();
}

void RecordCall::OnOpened(
    absl::StatusOr<std::shared_ptr<Recording>> recording) {
  active_.EndWait();
  if (!recording.ok()) return End(recording.status());
  recording_ = *std::move(recording);
  pieces_.emplace(recording_->Pieces(kMaxPayloadBytes, targets_only_));
  WriteStart();
}

void RecordCall::WriteStart() {
  const ShardSpec& spec = active_.shard()->spec();
  const RecordingStart& start = recording_->start();
  v1::RecordingStart& proto = *message_.mutable_start();
  proto.set_event(start.event);
  proto.set_first_row_id(spec.placement.first_row(spec.shard_index));
  proto.set_row_count(spec.placement.end_row(spec.shard_index) -
                      proto.first_row_id());
  proto.set_arithmetic(start.arithmetic);
  FillTrainerCounts(start.trainer_counts, proto);
  proto.set_buffer_bytes(recording_->buffer_bytes());
  if (start.digest.has_value()) {
    Fill(*start.digest, *proto.mutable_digest());
  }
  StartWrite(&message_);
}

void RecordCall::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the caller has gone"));
  if (in_event_) return WriteNextPiece();
  WaitForEvent();
}

void RecordCall::WriteNextPiece() {
  const absl::StatusOr<Recording::Event> event = recording_->Current();
  if (!event.ok()) return End(event.status());
  const absl::StatusOr<bool> next = pieces_->Next(**event, piece_);
  if (!next.ok()) return End(next.status());
  in_event_ = *next;
  if (!in_event_) return WaitForEvent();
  Fill(piece_, *message_.mutable_part());
  StartWrite(&message_);
}

void RecordCall::WaitForEvent() {
  active_.BeginWait();
  // Held here: the call may end, on another thread, before `Next` returns.
  const std::shared_ptr<Recording> recording = recording_;
  recording->Next([this](absl::StatusOr<bool> next) { OnEvent(next); });
}

void RecordCall::OnEvent(absl::StatusOr<bool> next) {
  active_.EndWait();
  if (!next.ok() || !*next) return End(next.status());
  const absl::StatusOr<Recording::Event> event = recording_->Current();
  if (!event.ok()) return End(event.status());
  v1::RecordedEvent& proto = *message_.mutable_event();
  Fill(**event, proto);
  if (recording_->WantsDigest(proto.event())) {
    Fill(*(*event)->digest, *proto.mutable_digest());
  }
  in_event_ = true;
  StartWrite(&message_);
}

void RecordCall::End(absl::Status status) {
  if (recording_ != nullptr && !status.ok()) recording_->End(status);
  recording_ = nullptr;  // Its memory is free before the caller hears of it.
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
