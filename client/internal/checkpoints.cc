#include <iterator>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "client/internal/checkpoint_job.h"
#include "client/internal/checkpoint_restore.h"
#include "client/internal/checkpoint_streams.h"
#include "client/internal/cluster_core.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::client {
namespace {

using internal::CallContext;
using internal::CheckpointChannel;
using internal::CheckpointStreams;
using internal::ClusterCore;
using internal::ProgressSink;
using internal::ShardChannel;

// Server 0 serves what concerns whole checkpoints.
absl::Status Ask(ClusterCore& cluster, const CallContext& context,
                 absl::FunctionRef<absl::Status(CheckpointChannel&)> call) {
  return cluster.CallServer(0, context, [&](ShardChannel& channel) {
    return call(channel.checkpoints());
  });
}

template <typename T>
absl::StatusOr<T> AskFor(
    ClusterCore& cluster, const CallContext& context,
    absl::FunctionRef<absl::StatusOr<T>(CheckpointChannel&)> call) {
  T result;
  ROWHOUSE_RETURN_IF_ERROR(
      Ask(cluster, context, [&](CheckpointChannel& channel) {
        absl::StatusOr<T> answer = call(channel);
        if (answer.ok()) result = *std::move(answer);
        return answer.status();
      }));
  return result;
}

// A long call to server 0.
absl::Status Follow(ClusterCore& cluster, CheckpointStreams::Call call,
                    const CheckpointCallOptions& options) {
  CheckpointStreams streams(cluster);
  streams.Start(0, std::move(call));
  return streams.Await(options.watcher,
                       cluster.clock().Now() + options.timeout);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointJob>> Checkpoints::Start(
    CheckpointPlan plan, const CallOptions& options) {
  return internal::StartCheckpoint(core_, std::move(plan),
                                   core_->Context(options.timeout));
}

absl::Status Checkpoints::PutTrainerState(std::string_view checkpoint,
                                          int32_t rank,
                                          std::span<const std::byte> state,
                                          const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  return Ask(*core_, context, [&](CheckpointChannel& channel) {
    return channel.PutTrainerState(checkpoint, rank, state, context);
  });
}

absl::StatusOr<std::vector<std::byte>> Checkpoints::GetTrainerState(
    std::string_view checkpoint, int32_t rank, const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  return AskFor<std::vector<std::byte>>(
      *core_, context, [&](CheckpointChannel& channel) {
        return channel.GetTrainerState(checkpoint, rank, context);
      });
}

absl::StatusOr<std::vector<CheckpointInfo>> Checkpoints::List(
    const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  std::vector<CheckpointInfo> checkpoints;
  std::string page_token;
  do {
    ROWHOUSE_ASSIGN_OR_RETURN(
        internal::CheckpointPage page,
        AskFor<internal::CheckpointPage>(
            *core_, context, [&](CheckpointChannel& channel) {
              return channel.List(page_token, context);
            }));
    std::move(page.checkpoints.begin(), page.checkpoints.end(),
              std::back_inserter(checkpoints));
    page_token = page.next_page_token;
  } while (!page_token.empty());
  return checkpoints;
}

absl::StatusOr<CheckpointInfo> Checkpoints::Get(std::string_view checkpoint,
                                                const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  return AskFor<CheckpointInfo>(*core_, context,
                                [&](CheckpointChannel& channel) {
                                  return channel.Get(checkpoint, context);
                                });
}

absl::Status Checkpoints::Delete(std::string_view checkpoint,
                                 const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  return Ask(*core_, context, [&](CheckpointChannel& channel) {
    return channel.Delete(checkpoint, /*unfinished_only=*/false, context);
  });
}

absl::Status Checkpoints::Verify(std::string_view checkpoint,
                                 const CheckpointCallOptions& options) {
  return Follow(
      *core_,
      [&](CheckpointChannel& channel, ProgressSink progress,
          const CallContext& context) {
        return channel.Verify(checkpoint, progress, context);
      },
      options);
}

absl::StatusOr<std::vector<CheckpointTableDiff>> Checkpoints::Diff(
    std::string_view checkpoint, std::string_view other,
    const CheckpointCallOptions& options) {
  std::vector<CheckpointTableDiff> tables;
  ROWHOUSE_RETURN_IF_ERROR(Follow(
      *core_,
      [&](CheckpointChannel& channel, ProgressSink progress,
          const CallContext& context) {
        absl::StatusOr<std::vector<CheckpointTableDiff>> diff =
            channel.Diff(checkpoint, other, progress, context);
        if (diff.ok()) tables = *std::move(diff);
        return diff.status();
      },
      options));
  return tables;
}

absl::Status Checkpoints::Compact(std::string_view checkpoint,
                                  std::string_view compact_name,
                                  const CheckpointCallOptions& options) {
  return Follow(
      *core_,
      [&](CheckpointChannel& channel, ProgressSink progress,
          const CallContext& context) {
        return channel.Compact(checkpoint, compact_name, progress, context);
      },
      options);
}

absl::StatusOr<std::vector<TableInfo>> Checkpoints::Restore(
    const RestorePlan& plan, const CheckpointCallOptions& options) {
  return internal::RestoreTables(core_, plan, options);
}

}  // namespace rowhouse::client
