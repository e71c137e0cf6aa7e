#ifndef ROWHOUSE_SERVER_SERVICE_RECORD_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_RECORD_CALL_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rowhouse/v1/event_service.pb.h"
#include "server/service/active_calls.h"
#include "server/shard/recording.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// One RecordEvents call: writes a message, then reads the next from the
/// recording or waits for it; one of these at a time. Between events it waits,
/// and a drain ends it. Deletes itself.
class RecordCall final
    : public grpc::ServerWriteReactor<v1::RecordEventsResponse> {
 public:
  RecordCall(ActiveCalls& calls, const grpc::CallbackServerContext& context)
      : active_(calls, context) {}

  /// Checks the request and opens the recording, or ends the call.
  void Start(TableRegistry& tables, const v1::RecordEventsRequest& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Open(TableRegistry& tables,
                    const v1::RecordEventsRequest& request);
  void OnOpened(absl::StatusOr<std::shared_ptr<Recording>> recording);

  // Each writes or ends; the call must not be touched after it.
  void WriteStart();
  void WriteNextPiece();
  void WaitForEvent();
  void OnEvent(absl::StatusOr<bool> next);
  void End(absl::Status status);

  ActiveCall active_;
  bool targets_only_ = false;
  // Set by `OnOpened`.
  std::shared_ptr<Recording> recording_;
  std::optional<RecordedPieces> pieces_;
  bool in_event_ = false;  // Its pieces are being written.
  RecordedPiece piece_;
  v1::RecordEventsResponse message_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_RECORD_CALL_H_
