#ifndef ROWHOUSE_SERVER_SERVICE_CHECKPOINT_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_CHECKPOINT_SERVICE_H_

#include "rowhouse/v1/checkpoint_service.grpc.pb.h"
#include "server/checkpoints.h"
#include "server/service/active_calls.h"
#include "server/shard/timer_queue.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `rowhouse.v1.CheckpointService`: checks requests, and has the work done on
/// threads of its own.
///
/// Thread-safe.
class CheckpointService final : public v1::CheckpointService::CallbackService {
 public:
  /// All must outlive it; `checkpoints` is null on a server without a
  /// directory.
  CheckpointService(TableRegistry& tables, ActiveCalls& calls,
                    TimerQueue& timers, Checkpoints* checkpoints)
      : tables_(tables),
        calls_(calls),
        timers_(timers),
        checkpoints_(checkpoints) {}

  grpc::ServerWriteReactor<v1::WriteCheckpointResponse>* WriteCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::WriteCheckpointRequest* request) override;
  grpc::ServerReadReactor<v1::PutTrainerStateRequest>* PutTrainerState(
      grpc::CallbackServerContext* context,
      v1::PutTrainerStateResponse* response) override;
  grpc::ServerWriteReactor<v1::GetTrainerStateResponse>* GetTrainerState(
      grpc::CallbackServerContext* context,
      const v1::GetTrainerStateRequest* request) override;
  grpc::ServerUnaryReactor* PublishCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::PublishCheckpointRequest* request,
      v1::PublishCheckpointResponse* response) override;
  grpc::ServerUnaryReactor* ListCheckpoints(
      grpc::CallbackServerContext* context,
      const v1::ListCheckpointsRequest* request,
      v1::ListCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* GetCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::GetCheckpointRequest* request,
      v1::GetCheckpointResponse* response) override;
  grpc::ServerUnaryReactor* DeleteCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::DeleteCheckpointRequest* request,
      v1::DeleteCheckpointResponse* response) override;
  grpc::ServerWriteReactor<v1::VerifyCheckpointResponse>* VerifyCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::VerifyCheckpointRequest* request) override;
  grpc::ServerWriteReactor<v1::DiffCheckpointsResponse>* DiffCheckpoints(
      grpc::CallbackServerContext* context,
      const v1::DiffCheckpointsRequest* request) override;
  grpc::ServerWriteReactor<v1::CompactCheckpointResponse>* CompactCheckpoint(
      grpc::CallbackServerContext* context,
      const v1::CompactCheckpointRequest* request) override;
  grpc::ServerWriteReactor<v1::RestoreTableResponse>* RestoreTable(
      grpc::CallbackServerContext* context,
      const v1::RestoreTableRequest* request) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
  TimerQueue& timers_;
  Checkpoints* const checkpoints_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_CHECKPOINT_SERVICE_H_
