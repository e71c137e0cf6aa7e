// Pulls, digests and states: what waits for events.

#include <cstdint>
#include <memory>
#include <optional>
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
namespace {

constexpr int64_t kMaxPullRowCount = 400'000;

absl::Status PullTooLarge(const char* limit, int64_t found, int64_t most) {
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kPullTooLarge,
                     absl::StrCat("the pull has ", found, " rows; at most ",
                                  most, " are allowed (", limit, ")"),
                     {{"limit", limit},
                      {"value", absl::StrCat(most)},
                      {"row_count", absl::StrCat(found)}});
}

absl::Status Malformed(const char* message) {
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kMalformed, message);
}

}  // namespace

absl::Status ShardCore::CheckReadEvent(
    std::optional<int64_t> min_event,
    std::optional<int64_t> exact_event) const {
  if (min_event.has_value() && exact_event.has_value()) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadEvent,
        "min_event and exact_event are both set; one excludes the other");
  }
  if (min_event.value_or(0) < 0) {
    return BadEventError("min_event", *min_event, 0);
  }
  if (exact_event.value_or(0) < 0) {
    return BadEventError("exact_event", *exact_event, 0);
  }
  if (exact_event.has_value() && *exact_event < events_.applied()) {
    return EventPastError("the read wants exactly event", *exact_event,
                          events_.applied());
  }
  return absl::OkStatus();
}

absl::StatusOr<SharedSlots> ShardCore::SlotsOf(PullRequest& request) const {
  const bool needs_trainer =
      request.handle.has_value() || request.return_handle;
  if (needs_trainer && !request.trainer.has_value()) {
    return Malformed("a handle needs a trainer; the pull names none");
  }
  if (!request.handle.has_value()) {
    return std::make_shared<const std::vector<int64_t>>(
        std::move(request.slots));
  }
  if (!request.slots.empty()) {
    return Malformed(
        "the pull has row ids and a handle; one excludes the "
        "other");
  }
  return handles_.Find(request.trainer->trainer_rank, *request.handle);
}

absl::Status ShardCore::CheckPullSize(int64_t row_count) const {
  if (row_count > kMaxPullRowCount) {
    return PullTooLarge("row ids of a call", row_count, kMaxPullRowCount);
  }
  const int64_t most = spec_.max_pull_bytes / store_->rows().row_bytes();
  if (row_count > most) return PullTooLarge("max_pull_bytes", row_count, most);
  return absl::OkStatus();
}

void ShardCore::OpenPull(PullRequest request, std::shared_ptr<Call> call,
                         Done<OpenedPull> done) {
  absl::StatusOr<int64_t> pull = [&]() -> absl::StatusOr<int64_t> {
    if (request.trainer.has_value()) {
      ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(*request.trainer));
    }
    ROWHOUSE_RETURN_IF_ERROR(
        CheckReadEvent(request.min_event, request.exact_event));
    ROWHOUSE_ASSIGN_OR_RETURN(SharedSlots slots, SlotsOf(request));
    ROWHOUSE_RETURN_IF_ERROR(
        CheckPullSize(static_cast<int64_t>(slots->size())));
    return pulls_.Add(request.trainer, std::move(slots), request.training);
  }();
  if (!pull.ok()) return done(std::move(pull).status());
  ParkedCall wait = ReadWait(request.min_event, request.exact_event,
                             request.trainer, std::move(call));
  wait.resume = [this, pull = *pull, exact_event = request.exact_event,
                 return_handle = request.return_handle,
                 done = std::move(done)](absl::Status waited) mutable {
    if (waited.ok()) waited = CheckReadEvent(std::nullopt, exact_event);
    if (waited.ok()) return done(StartPull(pull, return_handle));
    pulls_.Remove(pull);
    done(std::move(waited));
  };
  WaitFor(std::move(wait));
}

OpenedPull ShardCore::StartPull(int64_t pull, bool return_handle) {
  pulls_.Open(pull);
  const SharedSlots& slots = pulls_.slots(pull);
  OpenedPull opened;
  opened.pull = pull;
  opened.event = events_.applied();
  opened.row_count = static_cast<int64_t>(slots->size());
  if (return_handle) {
    opened.handle = handles_.Add(pulls_.trainer(pull)->trainer_rank, slots);
  }
  return opened;
}

absl::Status ShardCore::ReadPull(int64_t pull, int64_t row_count, void* out) {
  ROWHOUSE_RETURN_IF_ERROR(Usable());
  if (pulls_.trainer(pull).has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(*pulls_.trainer(pull)));
  }
  return pulls_.Read(pull, store_->rows(), row_count, out);
}

void ShardCore::AfterRead(int64_t pull) {
  // A snapshot's rows keep the states they had at its event.
  if (!Serving().ok() || SnapshotNeedsRows()) return;
  if (!pulls_.TakeBringCurrent(pull)) return;
  const absl::Status brought =
      store_->BringCurrent(history_, *pulls_.slots(pull));
  if (!brought.ok()) Break(brought);
}

void ShardCore::Digest(std::optional<int64_t> exact_event,
                       std::shared_ptr<Call> call, Done<ShardDigest> done) {
  absl::Status valid = CheckReadEvent(std::nullopt, exact_event);
  if (!valid.ok()) return done(std::move(valid));
  ParkedCall wait =
      ReadWait(std::nullopt, exact_event, std::nullopt, std::move(call));
  wait.resume = [this, exact_event,
                 done = std::move(done)](absl::Status waited) mutable {
    if (waited.ok()) waited = CheckReadEvent(std::nullopt, exact_event);
    if (!waited.ok()) return done(std::move(waited));
    done(DigestNow());
  };
  WaitFor(std::move(wait));
}

absl::StatusOr<ShardDigest> ShardCore::DigestNow() {
  ROWHOUSE_ASSIGN_OR_RETURN(const uint64_t row_sum, store_->Digest(history_));
  return ShardDigest{events_.applied(), row_sum, history_.Digest()};
}

void ShardCore::GetEventState(const EventWait& wait, std::shared_ptr<Call> call,
                              Done<EventState> done) {
  const std::pair<const char*, std::optional<int64_t>> events[] = {
      {"wait_sealed_event", wait.sealed_event},
      {"wait_applied_event", wait.applied_event},
      {"wait_folded.event", wait.folded_event}};
  for (const auto& [name, event] : events) {
    if (event.value_or(0) < 0) return done(BadEventError(name, *event, 0));
  }
  ParkedCall parked;
  parked.applied_event = wait.applied_event.value_or(0);
  parked.sealed_event = wait.sealed_event.value_or(0);
  parked.folded_event = wait.folded_event.value_or(0);
  parked.folded_rank = wait.folded_rank;
  parked.folded_part_count = wait.folded_part_count;
  parked.until = WaitLimit(*call);
  parked.call = std::move(call);
  parked.resume = [this, done = std::move(done)](absl::Status waited) mutable {
    if (!waited.ok()) return done(std::move(waited));
    done(EventState{
        events_.applied(), DescribeOpen(), events_.DescribeApplied(),
        sessions_.Describe(timers_.Now(), limits_.lease), DescribeLoad()});
  };
  WaitFor(std::move(parked));
}

ShardLoad ShardCore::DescribeLoad() const {
  const Recordings::Load recordings = recordings_.DescribeLoad();
  return {.parked_call_count = parked_.count(),
          .max_parked_call_count = limits_.max_parked_read_count,
          .open_pull_count = pulls_.count(),
          .landing_part_count = landings_.count(),
          .open_head_call_count = head_calls_.count(),
          .staged_bytes = events_.StagedBytes(),
          .recording_count = recordings.count,
          .recording_held_bytes = recordings.held_bytes,
          .recording_buffer_bytes = recordings.buffer_bytes};
}

std::vector<OpenEventState> ShardCore::DescribeOpen() const {
  std::vector<OpenEventState> states = events_.DescribeOpen();
  if (dense_ == nullptr) return states;
  for (OpenEventState& state : states) {
    if (state.event != events_.applied() + 1) continue;
    for (ContributionState& contribution : state.contributions) {
      const int32_t rank = contribution.trainer_rank;
      contribution.folded_part_count =
          dense_->FoldedCount(*events_.Find(state.event, rank), rank);
    }
  }
  return states;
}

absl::StatusOr<kernels::GradientStatistics> ShardCore::GetEventStatistics(
    int64_t event) {
  if (event < 1) return BadEventError("event", event, 1);
  const int64_t next = events_.applied() + 1;
  if (event < next) {
    return EventPastError("no parts are kept of event", event,
                          events_.applied());
  }
  if (event > next) return EventAheadError(event, events_.applied(), next);
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckAllSealed(event));
  absl::StatusOr<kernels::GradientStatistics> statistics =
      store_->Statistics(events_);
  // A fold that failed half-way leaves no gradient to go on with.
  if (!statistics.ok() && dense_ != nullptr) Break(statistics.status());
  return statistics;
}

ShardInfo ShardCore::GetInfo() const {
  return {events_.applied(), events_.trainer_counts().changes()};
}

}  // namespace rowhouse::server
