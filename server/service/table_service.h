#ifndef ROWHOUSE_SERVER_SERVICE_TABLE_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_TABLE_SERVICE_H_

#include "rowhouse/v1/table_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `rowhouse.v1.TableService`: checks requests and hands them to the registry
/// or the shard.
///
/// Thread-safe.
class TableService final : public v1::TableService::CallbackService {
 public:
  /// Both must outlive it.
  TableService(TableRegistry& tables, ActiveCalls& calls)
      : tables_(tables), calls_(calls) {}

  grpc::ServerUnaryReactor* CreateTable(
      grpc::CallbackServerContext* context,
      const v1::CreateTableRequest* request,
      v1::CreateTableResponse* response) override;
  grpc::ServerUnaryReactor* GetTable(grpc::CallbackServerContext* context,
                                     const v1::GetTableRequest* request,
                                     v1::GetTableResponse* response) override;
  grpc::ServerUnaryReactor* ListTables(
      grpc::CallbackServerContext* context,
      const v1::ListTablesRequest* request,
      v1::ListTablesResponse* response) override;
  grpc::ServerUnaryReactor* UpdateTable(
      grpc::CallbackServerContext* context,
      const v1::UpdateTableRequest* request,
      v1::UpdateTableResponse* response) override;
  grpc::ServerUnaryReactor* ResetTable(
      grpc::CallbackServerContext* context,
      const v1::ResetTableRequest* request,
      v1::ResetTableResponse* response) override;
  grpc::ServerUnaryReactor* DeleteTable(
      grpc::CallbackServerContext* context,
      const v1::DeleteTableRequest* request,
      v1::DeleteTableResponse* response) override;
  grpc::ServerUnaryReactor* DigestTable(
      grpc::CallbackServerContext* context,
      const v1::DigestTableRequest* request,
      v1::DigestTableResponse* response) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_TABLE_SERVICE_H_
