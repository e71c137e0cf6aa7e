#include "server/shard/shard_core.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_errors.h"
#include "server/shard/sparse_store.h"

namespace rowhouse::server {
namespace {

int64_t HandleRowLimit(const ShardSpec& spec) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  return 2 * std::min(spec.max_contribution_row_count, kMost);
}

std::unique_ptr<TableStore> MakeStore(const ShardSpec& spec,
                                      const ShardLimits& limits,
                                      kernels::Backend& backend) {
  if (spec.dense.has_value()) {
    return std::make_unique<DenseStore>(spec, limits, backend);
  }
  return std::make_unique<SparseStore>(spec, limits, backend);
}

}  // namespace

ShardCore::ShardCore(const ShardSpec& spec, const ShardLimits& limits,
                     kernels::Backend& backend, const TimerQueue& timers,
                     WakeAt wake_at, Beta2History history)
    : spec_(spec),
      limits_(limits),
      backend_(backend),
      timers_(timers),
      wake_at_(std::move(wake_at)),
      range_(spec),
      store_(MakeStore(spec, limits, backend)),
      dense_(spec.dense.has_value() ? static_cast<DenseStore*>(store_.get())
                                    : nullptr),
      history_(std::move(history)),
      events_(spec.trainer_count, spec.max_part_count),
      head_calls_(limits.max_anonymous_head_call_count),
      class_weights_(backend),
      handles_(HandleRowLimit(spec)),
      pulls_(backend, limits.max_anonymous_pull_count),
      parked_(limits.max_parked_read_count) {}

absl::StatusOr<std::unique_ptr<ShardCore>> ShardCore::Create(
    const ShardSpec& spec, const ShardLimits& limits, kernels::Backend& backend,
    const TimerQueue& timers, WakeAt wake_at) {
  ROWHOUSE_ASSIGN_OR_RETURN(Beta2History history,
                            Beta2History::Create(backend));
  std::unique_ptr<ShardCore> core(new ShardCore(
      spec, limits, backend, timers, std::move(wake_at), std::move(history)));
  if (limits.one_sided) {
    ROWHOUSE_ASSIGN_OR_RETURN(core->epoch_, RowEpoch::Create(backend));
  }
  ROWHOUSE_RETURN_IF_ERROR(core->store_->Reset());
  return core;
}

absl::Status ShardCore::Usable() const {
  if (!closed_.ok()) return DeepCopy(closed_);
  return fault_.ok() ? absl::OkStatus() : DeepCopy(fault_);
}

absl::Status ShardCore::Serving() const {
  absl::Status usable = Usable();
  if (!usable.ok() || not_restored_.ok()) return usable;
  return DeepCopy(not_restored_);
}

void ShardCore::Settle() {
  do {
    if (committed_.has_value()) ApplyCommitted();
    if (std::exchange(waits_may_end_, false)) EndWaits();
  } while (committed_.has_value());
}

bool ShardCore::FoldWaits() {
  return dense_ != nullptr && Usable().ok() && dense_->FoldWaits(events_);
}

void ShardCore::FoldNext() {
  if (!FoldWaits()) return;
  const absl::Status folded = dense_->FoldNext(events_);
  if (!folded.ok()) Break(folded);
  waits_may_end_ = true;
}

void ShardCore::OnTimer() {
  timer_ = absl::InfiniteFuture();
  EndWaits();
}

void ShardCore::Close(const absl::Status& reason) {
  if (closed_.ok()) closed_ = DeepCopy(reason);
  // Readers ask, and learn why. A backend at fault cannot be told.
  CloseWindows().IgnoreError();
  EndWaits();
  landings_.RevokeAll(closed_);
  head_calls_.RevokeAll(closed_);
  recordings_.EndAll(closed_);
  EndSnapshot(closed_);
}

void ShardCore::Break(const absl::Status& fault) {
  fault_ = absl::InternalError(absl::StrCat(
      "the backend failed and the shard is unusable: ", fault.message()));
  waits_may_end_ = true;
  landings_.RevokeAll(fault_);
  head_calls_.RevokeAll(fault_);
  recordings_.EndAll(fault_);
  EndSnapshot(fault_);
}

void ShardCore::WaitFor(ParkedCall parked) {
  std::optional<absl::Status> ended = Judge(parked, timers_.Now());
  if (!ended.has_value()) {
    absl::Status room = parked_.CheckRoom();
    if (!room.ok()) ended = std::move(room);
  }
  if (ended.has_value()) return parked.resume(*std::move(ended));
  parked_.Park(std::move(parked));
  ArmTimer();
}

std::optional<absl::Status> ShardCore::Judge(const ParkedCall& parked,
                                             absl::Time now) const {
  absl::Status serving = Serving();
  if (!serving.ok()) return serving;
  if (parked.call->cancelled) {
    return absl::CancelledError("the caller has gone");
  }
  if (parked.trainer.has_value()) {
    absl::Status open = sessions_.Check(*parked.trainer);
    if (!open.ok()) return open;
  }
  if (events_.applied() >= parked.applied_event &&
      events_.AllSealed(parked.sealed_event) && IsFolded(parked) &&
      chunk_returns_ >= parked.chunk_returns) {
    return absl::OkStatus();
  }
  if (now >= parked.until) return EventPendingError(events_.applied());
  return std::nullopt;
}

bool ShardCore::IsFolded(const ParkedCall& parked) const {
  if (parked.folded_event <= events_.applied()) return true;
  if (parked.folded_event > events_.applied() + 1) return false;
  const Contribution* contribution =
      events_.Find(parked.folded_event, parked.folded_rank);
  return contribution != nullptr && dense_ != nullptr &&
         dense_->FoldedCount(*contribution, parked.folded_rank) >=
             parked.folded_part_count;
}

void ShardCore::EndWaits() {
  const absl::Time now = timers_.Now();
  std::vector<Parked::Ended> ended = parked_.TakeEnded(
      [&](const ParkedCall& parked) { return Judge(parked, now); });
  for (auto& [parked, status] : ended) parked.resume(std::move(status));
  recordings_.EndCancelled();
  if (snapshot_ != nullptr && snapshot_->call->cancelled) {
    EndSnapshot(absl::CancelledError("the caller has gone"));
  }
  ArmTimer();
}

void ShardCore::ArmTimer() {
  const absl::Time first = parked_.FirstUntil();
  if (first >= timer_) return;
  timer_ = first;
  wake_at_(first);
}

absl::Time ShardCore::WaitLimit(const Call& call) const {
  return std::min(call.deadline, timers_.Now() + limits_.max_wait);
}

ParkedCall ShardCore::ReadWait(std::optional<int64_t> min_event,
                               std::optional<int64_t> exact_event,
                               const std::optional<TrainerSession>& trainer,
                               std::shared_ptr<Call> call) const {
  ParkedCall wait;
  wait.applied_event = exact_event.value_or(min_event.value_or(0));
  wait.until = WaitLimit(*call);
  wait.call = std::move(call);
  wait.trainer = trainer;
  return wait;
}

}  // namespace rowhouse::server
