#include "client/internal/checkpoint_job.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/checkpoint_streams.h"
#include "client/internal/table_admin.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

// For server 0 to remove what is left of a checkpoint that failed; and where
// `Cluster::CancelCalls` ended it, which is not to take long.
constexpr absl::Duration kRemovalTimeout = absl::Seconds(10);
constexpr absl::Duration kHastyRemovalTimeout = absl::Seconds(2);
// For one publication: a server 0 that stays away ends the job.
constexpr absl::Duration kPublishTimeout = absl::Minutes(2);

bool IsIncomplete(const absl::Status& status) {
  return wire::ReasonOf(status) == wire::reasons::kCheckpointIncomplete;
}

// Whether a call that ended so may have been carried out all the same.
bool IsUncertain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsUnknown(status);
}

class Job final : public CheckpointJob {
 public:
  Job(std::shared_ptr<ClusterCore> cluster, CheckpointPlan plan)
      : cluster_(std::move(cluster)),
        plan_(std::move(plan)),
        streams_(*cluster_) {}

  ~Job() override { Abandon(); }

  const CheckpointPlan& plan() const override { return plan_; }

  // On servers 0 .. server_count - 1.
  absl::Status Arm(int32_t server_count, const CallContext& context) {
    for (int32_t server = 0; server < server_count; ++server) {
      streams_.Start(server,
                     [this](CheckpointChannel& channel, ProgressSink progress,
                            const CallContext& call_context) {
                       return channel.Write(plan_, progress, call_context);
                     });
    }
    return streams_.AwaitBegun(context.deadline);
  }

  absl::StatusOr<PublishedCheckpoint> Await(
      const CheckpointCallOptions& options) override {
    const CallContext context = cluster_->Context(options.timeout);
    const absl::Status written =
        streams_.Await(options.watcher, context.deadline);
    absl::StatusOr<PublishedCheckpoint> published =
        written.ok() ? Publish(options.watcher, context)
                     : absl::StatusOr<PublishedCheckpoint>(written);
    may_be_whole_ |= published.ok();
    Abandon();
    return published;
  }

 private:
  // Waits for the trainers' states: they may come later than the files.
  absl::StatusOr<PublishedCheckpoint> Publish(const CheckpointWatcher& watcher,
                                              const CallContext& context) {
    Backoff backoff(cluster_->retry(), 0);
    while (true) {
      if (watcher != nullptr && !watcher(streams_.progress())) {
        return absl::CancelledError("cancelled");
      }
      absl::StatusOr<PublishedCheckpoint> published = PublishOnce(context);
      may_be_whole_ = IsUncertain(published.status());
      if (!IsIncomplete(published.status()) || plan_.trainer_state_count == 0) {
        return published;
      }
      const absl::Time next =
          cluster_->clock().Now() + backoff.Next(published.status());
      if (next >= context.deadline) return published;
      if (!context.cancellation->WaitUntil(cluster_->clock(), next)) {
        return absl::CancelledError("cancelled");
      }
    }
  }

  absl::StatusOr<PublishedCheckpoint> PublishOnce(CallContext context) {
    context.deadline =
        std::min(context.deadline, cluster_->clock().Now() + kPublishTimeout);
    absl::StatusOr<PublishedCheckpoint> published = absl::UnknownError("");
    const absl::Status status =
        cluster_->CallServer(0, context, [&](ShardChannel& channel) {
          published = channel.checkpoints().Publish(plan_, context);
          return published.status();
        });
    if (!status.ok()) return status;
    return published;
  }

  // Ends what goes on and removes what is there, unless it may be whole: the
  // name may be another checkpoint's, too.
  void Abandon() {
    streams_.Cancel();
    if (std::exchange(abandoned_, true) || may_be_whole_) return;
    if (!streams_.any_begun()) return;
    Cancellation never;
    const CallContext context = cluster_->Context(
        cluster_->stop().cancelled() ? kHastyRemovalTimeout : kRemovalTimeout,
        never);
    cluster_
        ->CallServer(0, context,
                     [&](ShardChannel& channel) {
                       return channel.checkpoints().Delete(
                           plan_.name, /*unfinished_only=*/true, context);
                     })
        .IgnoreError();
  }

  const std::shared_ptr<ClusterCore> cluster_;
  const CheckpointPlan plan_;
  bool may_be_whole_ = false;
  bool abandoned_ = false;
  CheckpointStreams streams_;  // Last: its threads use the rest.
};

// Gives each table that has none the newest event of its shards; returns how
// many servers have some of the tables, and whether it gave an event.
struct Resolved {
  int32_t server_count = 1;
  bool gave_event = false;
};
absl::StatusOr<Resolved> Resolve(ClusterCore& cluster, CheckpointPlan& plan,
                                 const CallContext& context) {
  Resolved resolved;
  for (CheckpointPlan::Table& table : plan.tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TableInfo info,
                              ReadTable(cluster, table.name, context));
    resolved.server_count =
        std::max(resolved.server_count, info.spec.shard_count);
    if (table.event.has_value()) continue;
    resolved.gave_event = true;
    table.event = 0;
    for (const TableShard& shard : info.shards) {
      table.event = std::max(*table.event, shard.event);
    }
  }
  return resolved;
}

// An event that was found, not named, may have gone by.
absl::Status Explain(const absl::Status& status) {
  const std::optional<wire::ErrorDetails> details = wire::DetailsOf(status);
  if (!details.has_value() || details->reason != wire::reasons::kEventPast) {
    return status;
  }
  return wire::WithDetails(
      absl::Status(status.code(),
                   absl::StrCat(status.message(),
                                "; trainers go on: name an event that they "
                                "have not reached")),
      *details);
}

absl::StatusOr<std::unique_ptr<CheckpointJob>> StartOnce(
    const std::shared_ptr<ClusterCore>& cluster, CheckpointPlan plan,
    const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Resolved resolved,
                            Resolve(*cluster, plan, context));
  auto job = std::make_unique<Job>(cluster, std::move(plan));
  const absl::Status armed = job->Arm(resolved.server_count, context);
  if (armed.ok()) return job;
  return resolved.gave_event ? Explain(armed) : armed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointJob>> StartCheckpoint(
    std::shared_ptr<ClusterCore> cluster, CheckpointPlan plan,
    const CallContext& context) {
  if (plan.tables.empty()) {
    return absl::InvalidArgumentError("no table, wanted one at least");
  }
  // A server lets go of a cancelled one a little later than its client.
  absl::StatusOr<std::unique_ptr<CheckpointJob>> job = absl::UnknownError("");
  ROWHOUSE_RETURN_IF_ERROR(
      RetryUntil(cluster->clock(), cluster->retry(), context, [&] {
        job = StartOnce(cluster, plan, context);
        const bool taken =
            wire::ReasonOf(job.status()) == wire::reasons::kCheckpointsOpen;
        return taken ? job.status() : absl::OkStatus();
      }));
  return job;
}

}  // namespace rowhouse::client::internal
