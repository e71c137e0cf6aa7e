#ifndef ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_

#include "rowhouse/v1/row_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/staging.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// The methods of a service that take and give bytes as they are on the wire.
using RowServiceBase = v1::RowService::WithRawCallbackMethod_PullRows<
    v1::RowService::WithRawCallbackMethod_PushGradients<
        v1::RowService::WithCallbackMethod_ImportRows<
            v1::RowService::Service>>>;

/// `rowhouse.v1.RowService`: one reactor a call, in pull_call, push_call and
/// import_call.
///
/// Thread-safe.
class RowService final : public RowServiceBase {
 public:
  /// All must outlive it.
  RowService(TableRegistry& tables, ActiveCalls& calls, Staging& staging)
      : tables_(tables), calls_(calls), staging_(staging) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullRows(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* PushGradients(
      grpc::CallbackServerContext* context,
      grpc::ByteBuffer* response) override;
  grpc::ServerReadReactor<v1::ImportRowsRequest>* ImportRows(
      grpc::CallbackServerContext* context,
      v1::ImportRowsResponse* response) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
  Staging& staging_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_
