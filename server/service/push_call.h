#ifndef ROWHOUSE_SERVER_SERVICE_PUSH_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_PUSH_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "proto/wire/row_message.h"
#include "rowhouse/v1/row_service.pb.h"
#include "server/service/active_calls.h"
#include "server/service/push_header.h"
#include "server/service/read_gate.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// One PushGradients call. Messages are landed as they come, on gRPC's
/// threads; the first one once the lane has admitted the part. The lane ends
/// the call when it revokes the part while the caller is waited for. Deletes
/// itself.
class PushCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  /// The references must outlive it.
  PushCall(ActiveCalls& calls, const grpc::CallbackServerContext& context,
           const TableRegistry& tables, grpc::ByteBuffer& response)
      : active_(calls, context), tables_(tables), response_(response) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  using Message = wire::RowMessage<v1::PushGradientsRequest>;

  // Afterwards the lane may have ended the call, and it may be gone.
  absl::Status ReadNext();
  absl::Status Begin();
  void OnBegun(absl::StatusOr<std::unique_ptr<PartLanding>> landing);
  absl::Status OnMessage();
  absl::Status OnEnd();
  absl::Status LandFirst();
  /// Rows of `message`, which is the call's next.
  ///
  /// Errors: what is wrong with its rows, ids or offset.
  absl::StatusOr<int64_t> RowCountOf(const Message& message) const;
  absl::Status Land(const Message& message);
  void Answer(const PartReceipt& receipt);
  void End(absl::Status status);

  ActiveCall active_;
  const std::shared_ptr<ReadGate> gate_ = std::make_shared<ReadGate>();
  const TableRegistry& tables_;
  grpc::ByteBuffer& response_;

  grpc::ByteBuffer received_;  // What is being read,
  Message message_;            // and was read.
  // The first message: kept until the part is admitted, and until the next read
  // is through, so that no rows are landed on the lane's thread.
  Message first_message_;
  bool first_landed_ = false;

  // Set when the first message has come; what follows is from it. Its `part`
  // has gone to the shard.
  std::unique_ptr<PushHeader> header_;
  int64_t row_bytes_ = 0;
  int64_t row_count_ = 0;
  bool by_handles_ = false;

  std::unique_ptr<PartLanding> landing_;
  int64_t landed_row_count_ = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PUSH_CALL_H_
