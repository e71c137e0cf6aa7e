#include "server/service/server_service.h"

#include <functional>
#include <string>
#include <utility>

#include "grpcpp/server_context.h"
#include "server/service/convert.h"
#include "server/service/limits.h"
#include "server/version.h"

namespace rowhouse::server {
namespace {

// Without its memory where it does not tell: a device that is at fault.
void SetDevice(kernels::Backend& backend, v1::Device& device) {
  device.set_description(backend.Description());
  const absl::StatusOr<kernels::MemoryState> memory = backend.Memory();
  if (!memory.ok()) return;
  device.set_memory_bytes(memory->total_bytes);
  device.set_free_memory_bytes(memory->free_bytes);
}

}  // namespace

ServerService::ServerService(ServerIdentity identity,
                             const TableRegistry& tables,
                             const ActiveCalls& calls,
                             std::function<void()> drain)
    : identity_(std::move(identity)),
      tables_(tables),
      calls_(calls),
      drain_(std::move(drain)) {}

grpc::ServerUnaryReactor* ServerService::GetServer(
    grpc::CallbackServerContext* context,
    const v1::GetServerRequest* /*request*/, v1::GetServerResponse* response) {
  const TableRegistry::Options& options = tables_.options();
  response->set_cluster_id(identity_.cluster_id);
  response->set_server_index(options.server_index);
  response->set_server_count(options.server_count);
  response->set_incarnation(identity_.incarnation);
  response->set_state(calls_.draining() ? v1::GetServerResponse::STATE_DRAINING
                                        : v1::GetServerResponse::STATE_SERVING);
  v1::ServerLimits& limits = *response->mutable_limits();
  limits.set_max_pull_row_count(kMaxPullRowCount);
  limits.set_max_message_payload_bytes(kMaxPayloadBytes);
  *limits.mutable_max_wait_duration() = ToProto(options.limits.max_wait);
  limits.set_memory_limit_bytes(options.memory_limit_bytes);
  response->set_reserved_bytes(tables_.reserved_bytes());
  response->set_backend(identity_.backend);
  SetDevice(tables_.backend(), *response->mutable_device());
  response->mutable_device()->set_index(identity_.device_index);
  response->set_version(std::string(Version()));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* ServerService::DrainServer(
    grpc::CallbackServerContext* context,
    const v1::DrainServerRequest* /*request*/,
    v1::DrainServerResponse* /*response*/) {
  drain_();
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace rowhouse::server
