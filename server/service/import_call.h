#ifndef ROWHOUSE_SERVER_SERVICE_IMPORT_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_IMPORT_CALL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rowhouse/v1/row_service.pb.h"
#include "server/service/active_calls.h"
#include "server/service/read_gate.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// One ImportRows call: gathers all its rows, at most the table's
/// `max_pull_bytes`, then hands them to the shard. Another import or the
/// table's deletion may end it while its caller is waited for. Deletes itself.
class ImportCall final : public grpc::ServerReadReactor<v1::ImportRowsRequest> {
 public:
  /// The references must outlive it.
  ImportCall(ActiveCalls& calls, const grpc::CallbackServerContext& context,
             const TableRegistry& tables, v1::ImportRowsResponse& response)
      : active_(calls, context), tables_(tables), response_(response) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // Afterwards the call may have been ended by another, and be gone.
  absl::Status ReadNext();
  absl::Status OnMessage();
  absl::Status Begin();
  absl::Status TakePlace(std::shared_ptr<ServedTable> table);
  absl::Status OnEnd();
  void End(absl::Status status);

  ActiveCall active_;
  const std::shared_ptr<ReadGate> gate_ = std::make_shared<ReadGate>();
  const TableRegistry& tables_;
  v1::ImportRowsResponse& response_;
  v1::ImportRowsRequest message_;

  // Set when the first message has come.
  std::shared_ptr<ServedTable> table_;
  int64_t import_ = 0;  // Of the table's; 0 without a place.
  int64_t first_row_id_ = 0;
  int64_t row_count_ = 0;
  int64_t row_bytes_ = 0;
  std::string rows_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_IMPORT_CALL_H_
