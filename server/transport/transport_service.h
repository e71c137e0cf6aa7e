#ifndef ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_
#define ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_

#include "rowhouse/v1/transport_service.grpc.pb.h"
#include "server/admin_thread.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"
#include "server/transport/mappings.h"
#include "server/transport/one_sided_options.h"

namespace rowhouse::server {

/// `rowhouse.v1.TransportService`. Where the path is not offered every call
/// says so.
///
/// Thread-safe.
class TransportService final : public v1::TransportService::CallbackService {
 public:
  /// The references must outlive it.
  TransportService(TableRegistry& tables, ActiveCalls& calls,
                   Mappings& mappings, OneSidedOptions options);

  grpc::ServerBidiReactor<v1::MapTableRequest, v1::MapTableResponse>* MapTable(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* OpenReadWindow(
      grpc::CallbackServerContext* context,
      const v1::OpenReadWindowRequest* request,
      v1::OpenReadWindowResponse* response) override;
  grpc::ServerUnaryReactor* PushInbox(grpc::CallbackServerContext* context,
                                      const v1::PushInboxRequest* request,
                                      v1::PushInboxResponse* response) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
  Mappings& mappings_;
  const OneSidedOptions options_;
  AdminThread inboxes_;  // Last: copies parts out, one after another.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_
