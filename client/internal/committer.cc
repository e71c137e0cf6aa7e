#include "client/internal/committer.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/internal/exact_sum.h"
#include "client/internal/retry.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr absl::Duration kAttemptTimeout = absl::Minutes(2);

absl::Status CommittedByAnother(int64_t event, int64_t applied_event) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kEventPast,
      absl::StrCat("event ", applied_event, " is applied, wanted event ", event,
                   " to be open"),
      {{"event", std::to_string(event)},
       {"applied_event", std::to_string(applied_event)}});
}

// What a contribution that was replaced meanwhile may give: look again.
bool SealsMoved(const absl::Status& status) {
  const std::string reason = wire::ReasonOf(status);
  return reason == wire::reasons::kNotSealed ||
         reason == wire::reasons::kSessionsDiffer ||
         reason == wire::reasons::kEventPast;
}

std::vector<int64_t> SessionsOf(const EventState& state, int64_t event) {
  std::vector<int64_t> sessions;
  for (const OpenEventState& open : state.open_events) {
    if (open.event != event || !open.all_sealed) continue;
    for (const ContributionState& contribution : open.contributions) {
      sessions.push_back(contribution.session);
    }
  }
  return sessions;
}

// Whether an update, or a decision, has the other kind of table's scalars.
template <typename Update>
absl::Status CheckKind(const TableInfo& table, const Update& update) {
  const bool dense = table.spec.dense.has_value();
  const bool wrong = dense ? std::holds_alternative<RowAdamScalars>(update)
                           : std::holds_alternative<AdamWScalars>(update);
  if (!wrong) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadCommit,
      absl::StrCat(dense ? "row-Adam" : "AdamW", " scalars for the ",
                   dense ? "dense" : "sparse", " table ", table.name,
                   ", wanted ", dense ? "AdamW" : "row-Adam", " scalars"),
      {{"table", table.name}});
}

}  // namespace

Committer::Committer(const Router& router, TrainerSession trainer,
                     int64_t next_event)
    : router_(router),
      trainer_(trainer),
      stop_(router.cluster().stop()),
      next_event_(next_event),
      halted_(std::make_shared<Cancellation>()),
      thread_([this] { Run(); }) {}

Committer::~Committer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  stop_.Cancel();
  thread_.join();
}

int64_t Committer::next_event() const {
  MutexLock lock(mutex_);
  return next_event_;
}

absl::Status Committer::status() const {
  MutexLock lock(mutex_);
  return status_;
}

std::shared_ptr<Cancellation> Committer::halted() const {
  MutexLock lock(mutex_);
  return halted_;
}

absl::Status Committer::Decide(int64_t event, CommitDecision decision) {
  ROWHOUSE_RETURN_IF_ERROR(CheckKind(router_.table(), decision));
  MutexLock lock(mutex_);
  if (event != next_event_) {
    if (!status_.ok()) return status_;
    return wire::Error(absl::StatusCode::kFailedPrecondition,
                       event < next_event_ ? wire::reasons::kEventPast
                                           : wire::reasons::kEventAhead,
                       absl::StrCat("a decision for event ", event,
                                    ", wanted one for event ", next_event_),
                       {{"event", std::to_string(event)},
                        {"wanted_event", std::to_string(next_event_)}});
  }
  if (!status_.ok()) {
    status_ = absl::OkStatus();
    halted_ = std::make_shared<Cancellation>();
  }
  tasks_.push_back({event, std::move(decision)});
  ++next_event_;
  changed_.SignalAll();
  return absl::OkStatus();
}

void Committer::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    const absl::Status status = CommitTask(task);
    if (status.ok()) continue;
    MutexLock lock(mutex_);
    if (stopping_) return;
    // The decisions after it are to be given again.
    tasks_.clear();
    next_event_ = task.event;
    status_ = status;
    halted_->Cancel();
  }
}

// Repeated until the trainer goes; each try is bounded.
absl::Status Committer::CallShard(
    int32_t shard,
    absl::FunctionRef<absl::Status(ShardChannel&, const CallContext&)> call) {
  ClusterCore& cluster = router_.cluster();
  return cluster.CallServer(
      shard, {absl::InfiniteFuture(), &stop_}, [&](ShardChannel& channel) {
        const absl::Status status =
            call(channel, cluster.Context(kAttemptTimeout, stop_));
        const bool too_long =
            status.code() == absl::StatusCode::kDeadlineExceeded &&
            !IsRetryable(status);
        return too_long ? absl::UnavailableError(status.message()) : status;
      });
}

absl::Status Committer::CallShards(
    absl::FunctionRef<absl::Status(int32_t, ShardChannel&, const CallContext&)>
        call) {
  return router_.cluster().pool().FanOut(
      router_.shard_count(), [&](int32_t shard) {
        return CallShard(
            shard, [&](ShardChannel& channel, const CallContext& context) {
              return call(shard, channel, context);
            });
      });
}

absl::Status Committer::CommitTask(const Task& task) {
  Clock& clock = router_.cluster().clock();
  Backoff backoff(router_.cluster().retry(), static_cast<uint64_t>(task.event));
  while (true) {
    std::optional<EventCommit> recorded;
    ROWHOUSE_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> sessions,
                              WaitForSeals(task.event, recorded));
    absl::Status status;
    if (recorded.has_value()) {
      status = CommitEverywhere(task.event, *recorded);
    } else if (sessions.has_value()) {
      absl::StatusOr<EventUpdate> update = Decision(task);
      status = update.ok() ? CommitEverywhere(task.event,
                                              {*std::move(sessions), *update})
                           : update.status();
    }
    const bool look_again = recorded.has_value() || sessions.has_value()
                                ? SealsMoved(status)
                                : true;
    if (!look_again) return status;
    if (!stop_.WaitUntil(clock, clock.Now() + backoff.Next(status))) {
      return absl::CancelledError("the trainer is gone");
    }
  }
}

absl::StatusOr<std::optional<std::vector<int64_t>>> Committer::WaitForSeals(
    int64_t event, std::optional<EventCommit>& recorded) {
  std::vector<EventState> states(router_.shard_count());
  ROWHOUSE_RETURN_IF_ERROR(CallShards(
      [&](int32_t shard, ShardChannel& channel, const CallContext& context) {
        absl::StatusOr<EventState> state = channel.GetEventState(
            router_.table().name, {.sealed_event = event}, context);
        if (state.ok()) states[shard] = *std::move(state);
        return state.status();
      }));
  for (const EventState& state : states) {
    for (const AppliedEventState& applied : state.applied_events) {
      if (applied.event == event) recorded = applied.commit;
    }
  }
  if (recorded.has_value()) return std::nullopt;
  for (const EventState& state : states) {
    if (state.event >= event) return CommittedByAnother(event, state.event);
  }
  const std::vector<int64_t> sessions = SessionsOf(states[0], event);
  for (const EventState& state : states) {
    if (sessions.empty() || SessionsOf(state, event) != sessions) {
      return std::nullopt;
    }
  }
  return sessions;
}

absl::StatusOr<EventUpdate> Committer::Decision(const Task& task) {
  if (std::holds_alternative<SkipEvent>(task.decision)) return SkipEvent{};
  if (const auto* row_adam = std::get_if<RowAdamScalars>(&task.decision)) {
    return *row_adam;
  }
  if (const auto* adamw = std::get_if<AdamWScalars>(&task.decision)) {
    return *adamw;
  }
  const DecideEvent& decide = std::get<DecideEvent>(task.decision);
  if (decide == nullptr) {
    return absl::InvalidArgumentError(
        "an empty function, wanted one that "
        "decides the event");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const GradientStatistics statistics,
                            ReadStatistics(task.event));
  ROWHOUSE_ASSIGN_OR_RETURN(EventUpdate update, decide(statistics));
  ROWHOUSE_RETURN_IF_ERROR(CheckKind(router_.table(), update));
  return update;
}

absl::StatusOr<GradientStatistics> Committer::ReadStatistics(int64_t event) {
  std::vector<ShardStatistics> shards(router_.shard_count());
  ROWHOUSE_RETURN_IF_ERROR(CallShards(
      [&](int32_t shard, ShardChannel& channel, const CallContext& context) {
        absl::StatusOr<ShardStatistics> statistics =
            channel.GetEventStatistics(router_.table().name, event, context);
        if (statistics.ok()) shards[shard] = *std::move(statistics);
        return statistics.status();
      }));
  constexpr size_t kExponents = 255;
  std::vector<int64_t> sums(kExponents);
  GradientStatistics result;
  for (const ShardStatistics& shard : shards) {
    if (shard.significand_sums.size() != kExponents) {
      return absl::InternalError(
          absl::StrCat("statistics of ", shard.significand_sums.size(),
                       " exponents, wanted ", kExponents));
    }
    for (size_t x = 0; x < kExponents; ++x) {
      sums[x] += shard.significand_sums[x];
    }
    result.row_count += shard.row_count;
    result.non_finite_row_count += shard.non_finite_row_count;
  }
  result.sum_of_squares = RoundExactSum(sums);
  return result;
}

absl::Status Committer::CommitEverywhere(int64_t event,
                                         const EventCommit& commit) {
  return CallShards(
      [&](int32_t, ShardChannel& channel, const CallContext& context) {
        return channel.Commit(router_.table().name, trainer_, event, commit,
                              context);
      });
}

}  // namespace rowhouse::client::internal
