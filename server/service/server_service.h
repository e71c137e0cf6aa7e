#ifndef ROWHOUSE_SERVER_SERVICE_SERVER_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_SERVER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "rowhouse/v1/server_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// What a server says about itself.
struct ServerIdentity {
  std::string cluster_id;
  int64_t incarnation = 0;  ///< Random, new at every start.
  std::string backend;      ///< `cpu` or `cuda`.
  int32_t device_index = 0;
};

/// `rowhouse.v1.ServerService`. Answers during a drain too.
///
/// Thread-safe.
class ServerService final : public v1::ServerService::CallbackService {
 public:
  /// `drain` starts the server's drain and returns at once. The references
  /// must outlive it.
  ServerService(ServerIdentity identity, const TableRegistry& tables,
                const ActiveCalls& calls, std::function<void()> drain);

  grpc::ServerUnaryReactor* GetServer(grpc::CallbackServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::GetServerResponse* response) override;
  grpc::ServerUnaryReactor* DrainServer(
      grpc::CallbackServerContext* context,
      const v1::DrainServerRequest* request,
      v1::DrainServerResponse* response) override;

 private:
  const ServerIdentity identity_;
  const TableRegistry& tables_;
  const ActiveCalls& calls_;
  const std::function<void()> drain_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_SERVER_SERVICE_H_
