#ifndef ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_
#define ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_

#include "rowhouse/v1/transport_service.grpc.pb.h"
#include "server/admin_thread.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"
#include "server/transport/link.h"
#include "server/transport/link_options.h"
#include "server/transport/mappings.h"
#include "server/transport/one_sided_options.h"

namespace rowhouse::server {

/// `rowhouse.v1.TransportService`. Where a path is not offered its calls say
/// so.
///
/// Thread-safe.
class TransportService final : public v1::TransportService::CallbackService {
 public:
  /// The references must outlive it.
  TransportService(TableRegistry& tables, ActiveCalls& calls,
                   Mappings& mappings, OneSidedOptions options, Links& links,
                   kernels::BackendOptions backend, LinkOptions link_options);

  /// Ends all links: clients go on without.
  void EndLinks();

  grpc::ServerBidiReactor<v1::MapTableRequest, v1::MapTableResponse>* MapTable(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* OpenReadWindow(
      grpc::CallbackServerContext* context,
      const v1::OpenReadWindowRequest* request,
      v1::OpenReadWindowResponse* response) override;
  grpc::ServerUnaryReactor* PushInbox(grpc::CallbackServerContext* context,
                                      const v1::PushInboxRequest* request,
                                      v1::PushInboxResponse* response) override;
  grpc::ServerBidiReactor<v1::OpenLinkRequest, v1::OpenLinkResponse>* OpenLink(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* PullLink(grpc::CallbackServerContext* context,
                                     const v1::PullLinkRequest* request,
                                     v1::PullLinkResponse* response) override;
  grpc::ServerWriteReactor<v1::PushLinkResponse>* PushLink(
      grpc::CallbackServerContext* context,
      const v1::PushLinkRequest* request) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
  Mappings& mappings_;
  const OneSidedOptions options_;
  Links& links_;
  const kernels::BackendOptions backend_;
  const LinkOptions link_options_;
  AdminThread stops_;    // Waits for links that ended.
  AdminThread inboxes_;  // Last: copies parts out, one after another.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_TRANSPORT_SERVICE_H_
