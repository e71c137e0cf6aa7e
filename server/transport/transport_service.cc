#include "server/transport/transport_service.h"

#include <memory>
#include <utility>

#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/unary_call.h"
#include "server/transport/link_call.h"
#include "server/transport/link_pull.h"
#include "server/transport/link_push_call.h"
#include "server/transport/map_call.h"
#include "server/transport/push_inbox.h"

namespace rowhouse::server {
namespace {

absl::StatusOr<WindowRequest> ToWindowRequest(
    const v1::OpenReadWindowRequest& request) {
  WindowRequest result;
  if (request.has_trainer()) {
    ROWHOUSE_ASSIGN_OR_RETURN(result.trainer, TrainerOf(request));
  }
  // The shard checks both.
  if (request.has_min_event()) result.min_event = request.min_event();
  if (request.has_exact_event()) result.exact_event = request.exact_event();
  return result;
}

}  // namespace

TransportService::TransportService(TableRegistry& tables, ActiveCalls& calls,
                                   Mappings& mappings, OneSidedOptions options,
                                   Links& links,
                                   kernels::BackendOptions backend,
                                   LinkOptions link_options)
    : tables_(tables),
      calls_(calls),
      mappings_(mappings),
      options_(std::move(options)),
      links_(links),
      backend_(backend),
      link_options_(link_options) {}

void TransportService::EndLinks() {
  for (const std::shared_ptr<Link>& link : links_.All()) {
    link->End(DrainingError());
  }
}

grpc::ServerBidiReactor<v1::MapTableRequest, v1::MapTableResponse>*
TransportService::MapTable(grpc::CallbackServerContext* context) {
  auto* const call =
      new MapCall(calls_, *context, tables_, mappings_, options_);
  call->Start();
  return call;
}

grpc::ServerUnaryReactor* TransportService::OpenReadWindow(
    grpc::CallbackServerContext* context,
    const v1::OpenReadWindowRequest* request,
    v1::OpenReadWindowResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Mapping> mapping,
                              mappings_.Find(request->mapping()));
    ROWHOUSE_RETURN_IF_ERROR(CheckIsCurrent(*mapping, tables_));
    ROWHOUSE_ASSIGN_OR_RETURN(WindowRequest window, ToWindowRequest(*request));
    call.active().Attach(mapping->shard);
    call.active().BeginWait();
    mapping->shard->OpenWindow(
        window, call.call(),
        call.Ending<ReadWindow>([response](const ReadWindow& opened) {
          response->set_event(opened.event);
          response->set_epoch(opened.epoch);
        }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TransportService::PushInbox(
    grpc::CallbackServerContext* context, const v1::PushInboxRequest* request,
    v1::PushInboxResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Mapping> mapping,
                              mappings_.Find(request->mapping()));
    ROWHOUSE_RETURN_IF_ERROR(CheckIsCurrent(*mapping, tables_));
    return server::PushInbox(tables_, inboxes_, std::move(mapping), *request,
                             *response, call);
  });
}

grpc::ServerBidiReactor<v1::OpenLinkRequest, v1::OpenLinkResponse>*
TransportService::OpenLink(grpc::CallbackServerContext* /*context*/) {
  auto* const call =
      new LinkCall({calls_, tables_, links_, stops_, backend_, link_options_});
  call->Start();
  return call;
}

grpc::ServerUnaryReactor* TransportService::PullLink(
    grpc::CallbackServerContext* context, const v1::PullLinkRequest* request,
    v1::PullLinkResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Link> link,
                              links_.Find(request->link()));
    return server::PullLink(tables_, std::move(link), *request, *response,
                            call);
  });
}

grpc::ServerWriteReactor<v1::PushLinkResponse>* TransportService::PushLink(
    grpc::CallbackServerContext* context, const v1::PushLinkRequest* request) {
  auto* const call = new LinkPushCall(calls_, *context);
  call->Start(tables_, links_, *request);
  return call;
}

}  // namespace rowhouse::server
