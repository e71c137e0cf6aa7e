// The calls that write and restore, and those that go through files for long.

#include "server/service/checkpoint_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint_restorer.h"
#include "server/checkpoint_writers.h"
#include "server/file_work.h"
#include "server/service/checkpoint_convert.h"
#include "server/service/progress_call.h"
#include "server/service/trainer_state_calls.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

using WorkOr = absl::StatusOr<std::unique_ptr<CheckpointWork>>;

absl::AnyInvocable<void(absl::Status)> Logging(
    std::string what, absl::AnyInvocable<void(absl::Status)> ended) {
  return [what = std::move(what),
          ended = std::move(ended)](absl::Status status) mutable {
    spdlog::info("{}: {}", what, status.ok() ? "done" : status.ToString());
    ended(std::move(status));
  };
}

absl::StatusOr<std::vector<ShardToSave>> ShardsHere(
    const TableRegistry& tables, const v1::WriteCheckpointRequest& request) {
  ROWHOUSE_RETURN_IF_ERROR(CheckTables(request.tables()));
  std::vector<ShardToSave> shards;
  for (const v1::CheckpointTable& table : request.tables()) {
    absl::StatusOr<std::shared_ptr<ServedTable>> served =
        tables.Find(table.name());
    if (served.ok()) {
      shards.push_back({*std::move(served), table.event()});
    } else if (!absl::IsNotFound(served.status())) {
      return std::move(served).status();
    }
  }
  return shards;
}

}  // namespace

grpc::ServerWriteReactor<v1::WriteCheckpointResponse>*
CheckpointService::WriteCheckpoint(grpc::CallbackServerContext* context,
                                   const v1::WriteCheckpointRequest* request) {
  return ProgressCall<v1::WriteCheckpointResponse>::Run(
      calls_, *context, timers_, [&](WorkCallbacks callbacks) -> WorkOr {
        ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                                  ToCheckpoint("name", request->name()));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string base,
                                  ToBase(request->base()));
        ROWHOUSE_ASSIGN_OR_RETURN(std::vector<ShardToSave> shards,
                                  ShardsHere(tables_, *request));
        return WriteShards(
            *checkpoints_, checkpoint, base, std::move(shards),
            std::move(callbacks.started),
            Logging("writing " + request->name(), std::move(callbacks.ended)));
      });
}

grpc::ServerReadReactor<v1::PutTrainerStateRequest>*
CheckpointService::PutTrainerState(grpc::CallbackServerContext* context,
                                   v1::PutTrainerStateResponse* response) {
  auto* const call =
      new PutTrainerStateCall(calls_, *context, checkpoints_, *response);
  call->Start();
  return call;
}

grpc::ServerWriteReactor<v1::GetTrainerStateResponse>*
CheckpointService::GetTrainerState(grpc::CallbackServerContext* context,
                                   const v1::GetTrainerStateRequest* request) {
  auto* const call = new GetTrainerStateCall(calls_, *context);
  call->Start(checkpoints_, *request);
  return call;
}

grpc::ServerWriteReactor<v1::VerifyCheckpointResponse>*
CheckpointService::VerifyCheckpoint(
    grpc::CallbackServerContext* context,
    const v1::VerifyCheckpointRequest* request) {
  return ProgressCall<v1::VerifyCheckpointResponse>::Run(
      calls_, *context, timers_, [&](WorkCallbacks callbacks) -> WorkOr {
        ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                                  ToCheckpoint("name", request->name()));
        callbacks.started();
        return RunFileWork(
            [this, checkpoint](FileProgress progress) {
              return checkpoints_->directory().Verify(checkpoint, progress);
            },
            std::move(callbacks.ended));
      });
}

grpc::ServerWriteReactor<v1::DiffCheckpointsResponse>*
CheckpointService::DiffCheckpoints(grpc::CallbackServerContext* context,
                                   const v1::DiffCheckpointsRequest* request) {
  auto diffs = std::make_shared<std::vector<TableDiff>>();
  return ProgressCall<v1::DiffCheckpointsResponse>::Run(
      calls_, *context, timers_,
      [&](WorkCallbacks callbacks) -> WorkOr {
        ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                                  ToCheckpoint("name", request->name()));
        ROWHOUSE_ASSIGN_OR_RETURN(
            const std::string other,
            ToCheckpoint("other_name", request->other_name()));
        callbacks.started();
        return RunFileWork(
            [this, checkpoint, other,
             diffs](FileProgress progress) -> absl::Status {
              ROWHOUSE_ASSIGN_OR_RETURN(
                  *diffs,
                  checkpoints_->directory().Diff(checkpoint, other, progress));
              return absl::OkStatus();
            },
            std::move(callbacks.ended));
      },
      [diffs](v1::DiffCheckpointsResponse& response) {
        for (const TableDiff& diff : *diffs) Fill(diff, *response.add_tables());
      });
}

grpc::ServerWriteReactor<v1::CompactCheckpointResponse>*
CheckpointService::CompactCheckpoint(
    grpc::CallbackServerContext* context,
    const v1::CompactCheckpointRequest* request) {
  return ProgressCall<v1::CompactCheckpointResponse>::Run(
      calls_, *context, timers_, [&](WorkCallbacks callbacks) -> WorkOr {
        ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                                  ToCheckpoint("name", request->name()));
        ROWHOUSE_ASSIGN_OR_RETURN(
            const std::string compact,
            ToCheckpoint("compact_name", request->compact_name()));
        callbacks.started();
        return RunFileWork(
            [this, checkpoint, compact,
             under_way =
                 checkpoints_->NoteUnderWay(compact)](FileProgress progress) {
              return checkpoints_->directory()
                  .Compact(checkpoint, compact, timers_.Now(), progress)
                  .status();
            },
            Logging("compacting " + request->name(),
                    std::move(callbacks.ended)));
      });
}

grpc::ServerWriteReactor<v1::RestoreTableResponse>*
CheckpointService::RestoreTable(grpc::CallbackServerContext* context,
                                const v1::RestoreTableRequest* request) {
  return ProgressCall<v1::RestoreTableResponse>::Run(
      calls_, *context, timers_, [&](WorkCallbacks callbacks) -> WorkOr {
        ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
        ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                                  ToCheckpoint("name", request->name()));
        ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<ServedTable> table,
                                  tables_.Find(request->table()));
        callbacks.started();
        return CheckpointRestorer::Start(
            checkpoints_->directory(), tables_.backend(), std::move(table),
            checkpoint,
            Logging(
                "restoring " + request->table() + " from " + request->name(),
                std::move(callbacks.ended)));
      });
}

}  // namespace rowhouse::server
