// Seals, commits, sessions, and the event itself.

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::StatusOr<int64_t> ShardCore::Seal(const TrainerSession& trainer,
                                        int64_t event, int32_t part_count) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(trainer));
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckSeal(trainer, event, part_count));
  SealNow(trainer, event);
  return events_.applied();
}

void ShardCore::SealNow(const TrainerSession& trainer, int64_t event) {
  events_.Seal(trainer, event);
  waits_may_end_ = true;
  // Parts that the seal does not name.
  const absl::Status sealed = events_.CheckPart({event, trainer.trainer_rank});
  landings_.Seal(event, trainer.trainer_rank, sealed);
  head_calls_.Seal(event, trainer.trainer_rank, sealed);
}

absl::StatusOr<int32_t> ShardCore::Discard(const TrainerSession& trainer,
                                           int64_t event) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(trainer));
  ROWHOUSE_ASSIGN_OR_RETURN(const int32_t part_count,
                            events_.Discard(trainer, event));
  ledger_.Drop(event, trainer.trainer_rank);
  landings_.Discard(event, trainer.trainer_rank);
  head_calls_.Discard(event, trainer.trainer_rank);
  if (event == events_.applied() + 1) DropFolds();
  ROWHOUSE_RETURN_IF_ERROR(Usable());
  return part_count;
}

absl::Status ShardCore::CheckCommitter(const TrainerSession& trainer) const {
  if (trainer.trainer_rank == 0) return sessions_.Check(trainer);
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kNotRank0,
                     absl::StrCat("rank ", trainer.trainer_rank,
                                  " sent a commit; only rank 0 may"),
                     {{"trainer_rank", absl::StrCat(trainer.trainer_rank)}});
}

void ShardCore::Commit(const TrainerSession& trainer, int64_t event,
                       EventCommit commit, std::shared_ptr<Call> call,
                       Done<bool> done) {
  const absl::Time until = WaitLimit(*call);
  CommitUntil(trainer, event, std::move(commit), std::move(call), until,
              std::move(done));
}

void ShardCore::CommitUntil(const TrainerSession& trainer, int64_t event,
                            EventCommit commit, std::shared_ptr<Call> call,
                            absl::Time until, Done<bool> done) {
  absl::StatusOr<bool> recorded = [&]() -> absl::StatusOr<bool> {
    ROWHOUSE_RETURN_IF_ERROR(CheckCommitter(trainer));
    // Two that waited for room go on at once: the second is a repetition.
    if (committed_.has_value() && event == events_.applied() + 1) {
      if (SameCommit(*committed_, commit)) return true;
      return CommitDiffersError(event);
    }
    return events_.CheckCommit(event, commit, UpdateRule(spec_));
  }();
  if (!recorded.ok() || *recorded) return done(std::move(recorded));
  CommitWhenRoom(trainer, event, std::move(commit), std::move(call), until,
                 std::move(done));
}

void ShardCore::ApplyCommitted() {
  const EventCommit commit = *std::exchange(committed_, std::nullopt);
  kernels::EventReport report;
  const absl::Status applied = RunEvent(commit, report);
  if (!applied.ok()) return Break(applied);
  Contributions contributions = events_.Archive(commit, report);
  handles_.Clear();
  head_calls_.Apply(events_.applied());
  ledger_.DropBefore(events_.applied() - Events::kKept + 1);
  waits_may_end_ = true;
  if (!recordings_.empty()) Record(commit, std::move(contributions));
  CutIfDue();
}

absl::Status ShardCore::RunEvent(const EventCommit& commit,
                                 kernels::EventReport& report) {
  if (commit.skip) {
    ROWHOUSE_RETURN_IF_ERROR(CloseWindows());
    DropFolds();
    ROWHOUSE_RETURN_IF_ERROR(Usable());
    return history_.Append(1.0F);
  }
  pulls_.Save(store_->rows());
  ROWHOUSE_RETURN_IF_ERROR(BeginWrite());
  const int32_t trainer_count =
      events_.trainer_counts().At(events_.applied() + 1);
  ROWHOUSE_ASSIGN_OR_RETURN(
      const float beta2,
      store_->Apply(events_, commit, DivisorOf(spec_.reduction, trainer_count),
                    history_, report));
  return history_.Append(beta2);
}

void ShardCore::DropFolds() {
  if (dense_ == nullptr) return;
  const absl::Status dropped = dense_->DropFolds();
  if (!dropped.ok()) Break(dropped);
}

absl::StatusOr<int64_t> ShardCore::OpenSession(const TrainerSession& trainer,
                                               int64_t owner) {
  const int64_t next = events_.applied() + 1;
  const int32_t most = events_.trainer_counts().MostFrom(next);
  if (trainer.trainer_rank < 0 || trainer.trainer_rank >= most) {
    return BadRankError(trainer.trainer_rank, most);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const Sessions::Opening opening,
                            sessions_.Open(trainer, owner, timers_.Now()));
  if (opening == Sessions::Opening::kNew) {
    for (const int64_t event : events_.DropUnsealed(trainer.trainer_rank)) {
      ledger_.Drop(event, trainer.trainer_rank);
      if (event == next) DropFolds();
    }
    landings_.Fence(trainer.trainer_rank);
    head_calls_.Fence(trainer.trainer_rank);
    pulls_.DropOlder(trainer);
    waits_may_end_ = true;  // Those of the older sessions.
    // The older sessions' too, which then learn that they are fenced.
    ROWHOUSE_RETURN_IF_ERROR(CloseWindows());
    ROWHOUSE_RETURN_IF_ERROR(Usable());
  }
  return events_.applied();
}

absl::StatusOr<int64_t> ShardCore::KeepAlive(const TrainerSession& trainer) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Renew(trainer, timers_.Now()));
  return events_.applied();
}

}  // namespace rowhouse::server
