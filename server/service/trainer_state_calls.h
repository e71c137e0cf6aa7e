#ifndef ROWHOUSE_SERVER_SERVICE_TRAINER_STATE_CALLS_H_
#define ROWHOUSE_SERVER_SERVICE_TRAINER_STATE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rowhouse/v1/checkpoint_service.pb.h"
#include "server/checkpoints.h"
#include "server/service/active_calls.h"

namespace rowhouse::server {

/// Most bytes of one trainer's state.
inline constexpr int64_t kMaxTrainerStateBytes = int64_t{1} << 30;

/// One PutTrainerState call: gathers the state, then has it written. Deletes
/// itself.
class PutTrainerStateCall final
    : public grpc::ServerReadReactor<v1::PutTrainerStateRequest> {
 public:
  /// The references, and `checkpoints` where it is not null, must outlive it.
  PutTrainerStateCall(ActiveCalls& calls,
                      const grpc::CallbackServerContext& context,
                      Checkpoints* checkpoints,
                      v1::PutTrainerStateResponse& response)
      : active_(calls, context),
        checkpoints_(checkpoints),
        response_(response) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status OnMessage();
  absl::Status OnEnd();
  void End(absl::Status status);

  ActiveCall active_;
  Checkpoints* const checkpoints_;
  v1::PutTrainerStateResponse& response_;
  v1::PutTrainerStateRequest message_;
  std::string checkpoint_;  // Set by the first message.
  int32_t trainer_rank_ = 0;
  int64_t size_bytes_ = 0;
  std::string state_;
};

/// One GetTrainerState call: reads the state, then writes it in pieces. Deletes
/// itself.
class GetTrainerStateCall final
    : public grpc::ServerWriteReactor<v1::GetTrainerStateResponse> {
 public:
  GetTrainerStateCall(ActiveCalls& calls,
                      const grpc::CallbackServerContext& context)
      : active_(calls, context) {}

  /// Checks the request and has the state read, or ends the call.
  void Start(Checkpoints* checkpoints,
             const v1::GetTrainerStateRequest& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Read(Checkpoints* checkpoints,
                    const v1::GetTrainerStateRequest& request);
  void WriteNext();
  void End(absl::Status status);

  ActiveCall active_;
  std::string state_;
  size_t next_ = 0;  // Of the bytes to be written.
  v1::GetTrainerStateResponse message_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_TRAINER_STATE_CALLS_H_
