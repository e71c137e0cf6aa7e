#include "server/service/row_service.h"

#include "server/service/import_call.h"
#include "server/service/pull_call.h"
#include "server/service/push_call.h"

namespace rowhouse::server {

grpc::ServerWriteReactor<grpc::ByteBuffer>* RowService::PullRows(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto* const call = new PullCall(calls_, *context, staging_);
  call->Start(tables_, *request);
  return call;
}

grpc::ServerReadReactor<grpc::ByteBuffer>* RowService::PushGradients(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  auto* const call = new PushCall(calls_, *context, tables_, *response);
  call->Start();
  return call;
}

grpc::ServerReadReactor<v1::ImportRowsRequest>* RowService::ImportRows(
    grpc::CallbackServerContext* context, v1::ImportRowsResponse* response) {
  auto* const call = new ImportCall(calls_, *context, tables_, *response);
  call->Start();
  return call;
}

}  // namespace rowhouse::server
