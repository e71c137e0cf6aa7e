#include "client/internal/trainer_core.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/table_admin.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status CheckRank(const TableInfo& table, int32_t rank) {
  int32_t trainer_count = table.spec.trainer_count;
  for (const TrainerCountChange& change : table.trainer_counts) {
    trainer_count = std::max(trainer_count, change.trainer_count);
  }
  if (rank >= 0 && rank < trainer_count) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadRank,
      absl::StrCat("rank ", rank, ", wanted one in [0, ", trainer_count, ")"),
      {{"rank", std::to_string(rank)},
       {"trainer_count", std::to_string(trainer_count)}});
}

absl::Status NothingToFlush(int32_t rank, int64_t event) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kOutOfOrder,
      absl::StrCat("an extra flush of rank ", rank, " at event ", event,
                   ", wanted one for each backward"),
      {{"rank", std::to_string(rank)}, {"event", std::to_string(event)}});
}

absl::Status NotRank0(int32_t rank) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kNotRank0,
      absl::StrCat("a commit of rank ", rank, ", wanted one of rank 0"),
      {{"rank", std::to_string(rank)}});
}

}  // namespace

absl::StatusOr<std::shared_ptr<TrainerCore>> TrainerCore::Join(
    std::shared_ptr<ClusterCore> cluster, std::string_view table, int32_t rank,
    absl::Duration timeout) {
  const CallContext context = cluster->Context(timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(TableInfo info,
                            ReadTable(*cluster, table, context));
  ROWHOUSE_RETURN_IF_ERROR(CheckRank(info, rank));
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<Router> router,
                            Router::Make(std::move(cluster), std::move(info)));
  ROWHOUSE_ASSIGN_OR_RETURN(const OpenedSession session,
                            OpenSessionEverywhere(*router, rank, context));
  if (rank == 0) {
    ROWHOUSE_RETURN_IF_ERROR(RepeatCommit(*router, session.trainer, context));
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      const Inheritance inheritance,
      SettleContributions(*router, session.trainer, context));
  return std::make_shared<TrainerCore>(std::move(router), session, inheritance);
}

TrainerCore::TrainerCore(std::unique_ptr<Router> router,
                         const OpenedSession& session,
                         const Inheritance& inheritance)
    : router_(std::move(router)),
      session_(session),
      stop_(cluster().stop()),
      gate_(router_->shard_count(), /*places=*/2, "pulls"),
      frozen_gate_(/*shard_count=*/1, /*places=*/1, "frozen head calls"),
      contributions_(inheritance) {
  if (session.trainer.rank == 0) {
    committer_ = std::make_unique<Committer>(*router_, session.trainer,
                                             inheritance.committed_event + 1);
  }
  keep_alive_ = std::make_unique<KeepAlive>(*router_, session);
}

void TrainerCore::Shutdown() {
  stop_.Cancel();
  keep_alive_.reset();
  committer_.reset();
}

int64_t TrainerCore::next_commit() const {
  return committer_ == nullptr ? next_event() : committer_->next_event();
}

absl::Status TrainerCore::CheckRows(const PulledRows& rows) const {
  const auto found = static_cast<int32_t>(rows.split->selections().size());
  if (found == router_->shard_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "rows of a table of ", found, " shards, wanted rows of ", table().name));
}

absl::StatusOr<std::shared_ptr<const RowSplit>> TrainerCore::Split(
    std::span<const int64_t> row_ids, bool keep) {
  std::vector<int64_t> copy;
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            cluster().DeviceOf(std::as_bytes(row_ids)));
  if (device != nullptr) {
    copy.resize(row_ids.size());
    ROWHOUSE_RETURN_IF_ERROR(
        device->Copy(row_ids.data(), copy.data(),
                     static_cast<int64_t>(row_ids.size_bytes())));
    ROWHOUSE_RETURN_IF_ERROR(device->Synchronize());
    row_ids = copy;
  }
  return RowSplit::MakeOn(keep ? cluster().device() : nullptr,
                          router_->placement(), row_ids);
}

absl::StatusOr<std::shared_ptr<const PulledRows>> TrainerCore::Pull(
    std::shared_ptr<const RowSplit> split, RowBuffer out,
    const PullOptions& options, const CallContext& context) {
  ROWHOUSE_RETURN_IF_ERROR(
      CheckReadEvents(options.min_event, options.exact_event));
  return router_->Pull(std::move(split), out,
                       {.trainer = session_.trainer,
                        .min_event = options.min_event,
                        .exact_event = options.exact_event,
                        .training = options.training},
                       gate_, context);
}

absl::Status TrainerCore::Repull(const PulledRows& rows,
                                 std::span<std::byte> out,
                                 const CallOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRows(rows));
  ROWHOUSE_RETURN_IF_ERROR(CheckBufferSize(out.size(), rows.split->row_count(),
                                           table().row_bytes()));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            cluster().DeviceOf(out));
  return router_->Repull(rows, {out.data(), device}, session_.trainer, gate_,
                         Context(options.timeout));
}

absl::StatusOr<PushResult> TrainerCore::Push(
    int64_t event, const PulledRows& rows, std::span<const std::byte> gradients,
    const PushOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRows(rows));
  ROWHOUSE_RETURN_IF_ERROR(CheckBufferSize(
      gradients.size(), rows.split->row_count(), table().gradient_row_bytes()));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            cluster().DeviceOf(gradients));
  ROWHOUSE_ASSIGN_OR_RETURN(const PartNumber number,
                            contributions_.BeginPart(event, options.part));
  const int32_t part = number.part;
  RoutedPush push{.trainer = session_.trainer,
                  .event = event,
                  .part = part,
                  .rows = &rows,
                  .gradients = gradients.data(),
                  .device = device,
                  .seal_part_count = std::nullopt};
  const CallContext context = Context(options.timeout);
  // With more shards than one the seal waits until all have accepted the part:
  // a part that is refused leaves no shard sealed.
  const bool seal_along = options.seal && router_->shard_count() == 1;
  if (seal_along) push.seal_part_count = part + 1;
  absl::StatusOr<bool> duplicate = router_->Push(push, context);
  if (duplicate.ok() && options.seal && !seal_along) {
    absl::Status sealed = SealEverywhere(event, part + 1, context);
    if (!sealed.ok()) duplicate = std::move(sealed);
  }
  contributions_.EndPart(event, number, duplicate.ok());
  ROWHOUSE_RETURN_IF_ERROR(duplicate.status());
  if (options.seal) contributions_.SetSealed(event, part + 1);
  return PushResult{part, *duplicate};
}

absl::Status TrainerCore::SealEverywhere(int64_t event, int32_t part_count,
                                         const CallContext& context) {
  return router_->CallShards(context, [&](int32_t, ShardChannel& channel) {
    return channel.Seal(table().name, session_.trainer, event, part_count,
                        context);
  });
}

absl::Status TrainerCore::Seal(int64_t event, const CallOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CommitterStatus());
  ROWHOUSE_ASSIGN_OR_RETURN(const int32_t part_count,
                            contributions_.PartCount(event));
  ROWHOUSE_RETURN_IF_ERROR(
      SealEverywhere(event, part_count, Context(options.timeout)));
  contributions_.SetSealed(event, part_count);
  return absl::OkStatus();
}

absl::Status TrainerCore::Discard(int64_t event, const CallOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(contributions_.CheckOpen(event));
  const CallContext context = Context(options.timeout);
  ROWHOUSE_RETURN_IF_ERROR(
      router_->CallShards(context, [&](int32_t, ShardChannel& channel) {
        return channel.Discard(table().name, session_.trainer, event, context);
      }));
  contributions_.Discard(event);
  flushes_.Discard(event);
  return absl::OkStatus();
}

absl::Status TrainerCore::Commit(int64_t event, CommitDecision decision) {
  if (committer_ == nullptr) return NotRank0(session_.trainer.rank);
  return committer_->Decide(event, std::move(decision));
}

absl::Status TrainerCore::WaitForEvent(int64_t event,
                                       const CallOptions& options) {
  Cancellation halted(stop_);
  // A committer that halts ends the wait: its event is not going to come.
  std::shared_ptr<Cancellation> committer_halted =
      committer_ == nullptr ? std::make_shared<Cancellation>()
                            : committer_->halted();
  const Cancellation::Callback on_halt(*committer_halted,
                                       [&] { halted.Cancel(); });
  const CallContext context = cluster().Context(options.timeout, halted);
  const absl::Status status =
      router_->CallShards(context, [&](int32_t, ShardChannel& channel) {
        return channel
            .GetEventState(table().name, {.applied_event = event}, context)
            .status();
      });
  if (absl::IsCancelled(status)) {
    ROWHOUSE_RETURN_IF_ERROR(CommitterStatus());
  }
  return status;
}

absl::Status TrainerCore::FlushWeightGradient(const CallOptions& options) {
  const std::optional<DelayedGradient> oldest = flushes_.Pop();
  if (!oldest.has_value()) {
    return NothingToFlush(session_.trainer.rank, next_event());
  }
  if (oldest->applied) return absl::OkStatus();
  const CallContext context = Context(options.timeout);
  const EventWait wait{
      .folded =
          FoldedParts{oldest->event, session_.trainer.rank, oldest->part + 1}};
  absl::Status status =
      router_->CallShards(context, [&](int32_t, ShardChannel& channel) {
        return channel.GetEventState(table().name, wait, context).status();
      });
  if (!status.ok()) flushes_.PutBack(*oldest);
  return status;
}

}  // namespace rowhouse::client::internal
