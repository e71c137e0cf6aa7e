// Seals, commits, sessions, and the event itself.

#include <cstdint>
#include <utility>
#include <vector>

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
}

absl::StatusOr<int32_t> ShardCore::Discard(const TrainerSession& trainer,
                                           int64_t event) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(trainer));
  ROWHOUSE_ASSIGN_OR_RETURN(const int32_t part_count,
                            events_.Discard(trainer, event));
  ledger_.Drop(event, trainer.trainer_rank);
  landings_.Discard(event, trainer.trainer_rank);
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

absl::StatusOr<bool> ShardCore::Commit(const TrainerSession& trainer,
                                       int64_t event, EventCommit commit) {
  ROWHOUSE_RETURN_IF_ERROR(CheckCommitter(trainer));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const bool recorded, events_.CheckCommit(event, commit, spec_.reduction));
  if (!recorded) committed_ = std::move(commit);
  return recorded;
}

void ShardCore::ApplyCommitted() {
  const EventCommit commit = *std::exchange(committed_, std::nullopt);
  kernels::EventReport report;
  const absl::Status applied = RunEvent(commit, report);
  if (!applied.ok()) return Break(applied);
  events_.Archive(commit, report);
  handles_.Clear();
  ledger_.DropBefore(events_.applied() - Events::kKept + 1);
  waits_may_end_ = true;
}

absl::Status ShardCore::RunEvent(const EventCommit& commit,
                                 kernels::EventReport& report) {
  if (commit.skip) return history_.Append(1.0F);
  const int64_t number = events_.applied() + 1;
  pulls_.Save(rows_.table());
  const std::vector<kernels::GradientPart> parts = events_.PartsOf(number);
  kernels::RowAdamEvent event;
  event.parts = parts;
  event.gradient_dtype = spec_.gradient_dtype;
  event.factors = kernels::NarrowScalars(
      commit.scalars,
      DivisorOf(spec_.reduction, events_.trainer_counts().At(number)));
  event.policy = spec_.policy;
  event.history = history_.view();
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.ApplyRowAdamEvent(rows_.table(), event, report));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return history_.Append(event.factors.beta2);
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
    }
    landings_.Fence(trainer.trainer_rank);
    pulls_.DropOlder(trainer);
    waits_may_end_ = true;  // Those of the older sessions.
  }
  return events_.applied();
}

absl::StatusOr<int64_t> ShardCore::KeepAlive(const TrainerSession& trainer) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Renew(trainer, timers_.Now()));
  return events_.applied();
}

}  // namespace rowhouse::server
