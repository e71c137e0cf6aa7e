#ifndef ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_

#include "rowhouse/v1/row_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `rowhouse.v1.RowService`: one reactor a call, in pull_call, push_call and
/// import_call.
///
/// Thread-safe.
class RowService final : public v1::RowService::CallbackService {
 public:
  /// Both must outlive it.
  RowService(TableRegistry& tables, ActiveCalls& calls)
      : tables_(tables), calls_(calls) {}

  grpc::ServerWriteReactor<v1::PullRowsResponse>* PullRows(
      grpc::CallbackServerContext* context,
      const v1::PullRowsRequest* request) override;
  grpc::ServerReadReactor<v1::PushGradientsRequest>* PushGradients(
      grpc::CallbackServerContext* context,
      v1::PushGradientsResponse* response) override;
  grpc::ServerReadReactor<v1::ImportRowsRequest>* ImportRows(
      grpc::CallbackServerContext* context,
      v1::ImportRowsResponse* response) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_ROW_SERVICE_H_
