// Snapshots: rows as of an event, while events go on.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

// Of blocks, and as many again and more for before-images.
constexpr int64_t kLeastChunks = SnapshotRows::kBlockChunks + 4;

absl::Status CheckpointBehindError(int64_t event) {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kCheckpointBehind,
      absl::StrCat("a checkpoint is being written and its buffer had no room "
                   "for the rows that event ",
                   event, " would change"),
      {{"event", absl::StrCat(event)}, {"limit", "checkpoint.buffer_bytes"}},
      kRetryDelay);
}

}  // namespace

absl::Status ShardCore::CheckSnapshot(const SnapshotRequest& request) const {
  if (request.event < 0) return BadEventError("event", request.event, 0);
  if (request.event < events_.applied()) {
    return EventPastError("the checkpoint is of event", request.event,
                          events_.applied());
  }
  if (snapshot_ != nullptr) {
    return wire::Error(absl::StatusCode::kResourceExhausted,
                       wire::reasons::kCheckpointsOpen,
                       absl::StrCat("a checkpoint of ", spec_.table,
                                    " is being written; one may be at a time"),
                       {{"table", spec_.table},
                        {"limit", "checkpoints of a shard"},
                        {"value", "1"}},
                       kRetryDelay);
  }
  if (!request.base.has_value()) return absl::OkStatus();
  // Another one may have been given its name.
  const auto base = bases_.find(request.base->name);
  if (base == bases_.end() || base->second != request.base->event) {
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kNoBase,
        absl::StrCat("the rows of ", spec_.table,
                     " did not come to be from those of checkpoint ",
                     request.base->name, " as of event ", request.base->event,
                     "; a checkpoint without a base is wanted"),
        {{"table", spec_.table}, {"base", request.base->name}});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<OpenedSnapshot>> ShardCore::OpenSnapshot(
    SnapshotRequest request, std::shared_ptr<Call> call,
    SnapshotChunks::OnReturn on_return) {
  ROWHOUSE_RETURN_IF_ERROR(CheckSnapshot(request));
  auto snapshot = std::make_shared<OpenedSnapshot>();
  snapshot->layout = std::make_shared<const ChunkLayout>(
      RowColumnsOf(spec_), request.block_row_count);
  const int64_t chunk_bytes = snapshot->layout->size_bytes();
  snapshot->chunks = std::make_shared<SnapshotChunks>(
      backend_, chunk_bytes,
      std::max(kLeastChunks, request.buffer_bytes / chunk_bytes),
      std::move(on_return));
  // Dense rows all change at every event.
  if (request.base.has_value() && dense_ == nullptr) {
    snapshot->base_event = request.base->event;
  }
  snapshot->request = std::move(request);
  snapshot->call = std::move(call);
  snapshot_ = snapshot;
  CutIfDue();
  return snapshot;
}

void ShardCore::CutIfDue() {
  if (snapshot_ == nullptr || snapshot_->rows != nullptr ||
      snapshot_->request.event != events_.applied()) {
    return;
  }
  const absl::Status cut = Cut(*snapshot_);
  if (!cut.ok()) return EndSnapshot(cut);
  if (snapshot_->cut_done) {
    std::exchange(snapshot_->cut_done, nullptr)(absl::OkStatus());
  }
}

absl::Status ShardCore::Cut(OpenedSnapshot& snapshot) {
  SnapshotRows::Source source{.backend = &backend_,
                              .columns = store_->columns(),
                              .shard_row_count = store_->rows().row_count};
  if (snapshot.base_event.has_value()) {
    source.has_base = true;
    ROWHOUSE_ASSIGN_OR_RETURN(
        source.slots,
        SlotsChangedSince(backend_, store_->rows().states,
                          source.shard_row_count, *snapshot.base_event,
                          *snapshot.chunks));
  }
  const std::vector<float>& beta2 = history_.beta2();
  snapshot.state = {events_.applied(),
                    {beta2.begin() + 1, beta2.end()},
                    events_.trainer_counts().changes()};
  snapshot.rows = std::make_unique<SnapshotRows>(
      std::move(source), snapshot.layout, snapshot.chunks);
  return absl::OkStatus();
}

void ShardCore::AwaitCut(OpenedSnapshot& snapshot,
                         absl::AnyInvocable<void(absl::Status)> done) {
  if (!snapshot.ended.ok()) return done(DeepCopy(snapshot.ended));
  if (snapshot.rows != nullptr) return done(absl::OkStatus());
  snapshot.cut_done = std::move(done);
}

void ShardCore::NextPiece(OpenedSnapshot& snapshot,
                          Done<std::unique_ptr<SnapshotPiece>> done) {
  if (!snapshot.ended.ok()) return done(DeepCopy(snapshot.ended));
  snapshot.next_done = std::move(done);
  ServePiece();
}

void ShardCore::ServePiece() {
  if (snapshot_ == nullptr || !snapshot_->next_done) return;
  if (snapshot_->rows->finished()) {
    return std::exchange(snapshot_->next_done, nullptr)(nullptr);
  }
  absl::StatusOr<std::unique_ptr<SnapshotPiece>> piece =
      snapshot_->rows->Next();
  if (!piece.ok()) return EndSnapshot(piece.status());
  if (*piece == nullptr) return;  // Until a chunk comes back.
  if (snapshot_->rows->finished()) EndRoomWaits(*snapshot_);
  std::exchange(snapshot_->next_done, nullptr)(*std::move(piece));
}

void ShardCore::OnChunkReturned() {
  ++chunk_returns_;
  waits_may_end_ = true;
  ServePiece();
}

void ShardCore::NoteDurable(const OpenedSnapshot& snapshot) {
  if (!snapshot.ended.ok()) return;
  bases_[snapshot.request.name] = snapshot.request.event;
}

void ShardCore::CloseSnapshot(const OpenedSnapshot& snapshot) {
  if (snapshot_.get() != &snapshot) return;
  EndSnapshot(absl::CancelledError("the snapshot has been closed"));
}

void ShardCore::EndSnapshot(const absl::Status& reason) {
  if (snapshot_ == nullptr) return;
  const std::shared_ptr<OpenedSnapshot> snapshot =
      std::exchange(snapshot_, nullptr);
  EndRoomWaits(*snapshot);
  snapshot->ended = DeepCopy(reason);
  snapshot->chunks->Close();
  if (snapshot->cut_done) {
    std::exchange(snapshot->cut_done, nullptr)(DeepCopy(reason));
  }
  if (snapshot->next_done) {
    std::exchange(snapshot->next_done, nullptr)(DeepCopy(reason));
  }
}

bool ShardCore::SnapshotNeedsRows() const {
  return snapshot_ != nullptr && snapshot_->rows != nullptr &&
         !snapshot_->rows->finished();
}

absl::StatusOr<bool> ShardCore::PutAsideNextEvent() {
  SnapshotRows& rows = *snapshot_->rows;
  if (dense_ != nullptr) return rows.PutAllAside();
  for (const kernels::GradientPart& part :
       events_.PartsOf(events_.applied() + 1)) {
    std::vector<int64_t> slots(static_cast<size_t>(part.row_count));
    ROWHOUSE_RETURN_IF_ERROR(
        backend_.Copy(part.slots, slots.data(),
                      part.row_count * static_cast<int64_t>(sizeof(int64_t))));
    ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
    ROWHOUSE_ASSIGN_OR_RETURN(const bool all, rows.PutAside(slots));
    if (!all) return false;
  }
  return true;
}

bool ShardCore::MakeRoom() {
  if (!SnapshotNeedsRows()) return true;
  const absl::StatusOr<bool> all = PutAsideNextEvent();
  if (!all.ok()) {
    EndSnapshot(all.status());
    return true;
  }
  snapshot_->before_image_row_count = snapshot_->rows->put_aside_count();
  if (*all) {
    NoteRoom(*snapshot_);
  } else if (!snapshot_->wait_since.has_value()) {
    snapshot_->wait_since = timers_.Now();
  }
  ServePiece();
  return *all || !SnapshotNeedsRows();
}

void ShardCore::EndRoomWaits(OpenedSnapshot& snapshot) {
  NoteRoom(snapshot);
  ++chunk_returns_;
  waits_may_end_ = true;
}

void ShardCore::NoteRoom(OpenedSnapshot& snapshot) {
  if (!snapshot.wait_since.has_value()) return;
  snapshot.event_wait_nanoseconds +=
      absl::ToInt64Nanoseconds(timers_.Now() - *snapshot.wait_since);
  snapshot.wait_since.reset();
}

void ShardCore::CommitWhenRoom(const TrainerSession& trainer, int64_t event,
                               EventCommit commit, std::shared_ptr<Call> call,
                               absl::Time until, Done<bool> done) {
  if (commit.skip || MakeRoom()) {
    committed_ = std::move(commit);
    return done(false);
  }
  ParkedCall wait;
  wait.chunk_returns = chunk_returns_ + 1;
  wait.until = until;
  wait.call = call;
  wait.trainer = trainer;
  wait.resume = [this, trainer, event, commit = std::move(commit), call, until,
                 done = std::move(done)](absl::Status waited) mutable {
    if (absl::IsDeadlineExceeded(waited)) waited = CheckpointBehindError(event);
    if (!waited.ok()) return done(std::move(waited));
    CommitUntil(trainer, event, std::move(commit), std::move(call), until,
                std::move(done));
  };
  WaitFor(std::move(wait));
}

}  // namespace rowhouse::server
