#ifndef ROWHOUSE_SERVER_SERVER_H_
#define ROWHOUSE_SERVER_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "kernels/backend.h"
#include "kernels/mutex.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "server/checkpoints.h"
#include "server/config.h"
#include "server/service/active_calls.h"
#include "server/service/checkpoint_service.h"
#include "server/service/event_service.h"
#include "server/service/lm_head_service.h"
#include "server/service/row_service.h"
#include "server/service/server_service.h"
#include "server/service/table_service.h"
#include "server/shard/timer_queue.h"
#include "server/socket_path.h"
#include "server/staging.h"
#include "server/table_registry.h"
#include "server/transport/transport_service.h"

namespace rowhouse::server {

/// One shard server: the services on a port, with health and reflection.
///
/// A drain goes: health says NOT_SERVING; after `drain_delay_duration` new
/// calls, and calls that wait for an event, end UNAVAILABLE (DRAINING); calls
/// under way have `drain_timeout_duration` to finish, then they are cancelled;
/// the port is closed.
///
/// Thread-safe.
class Server {
 public:
  /// Makes the configured tables, then serves. Health is SERVING when it
  /// returns.
  ///
  /// Errors:
  ///   kInvalidArgument    the configuration is wrong; names the field or file.
  ///   kUnimplemented      this build has no such backend.
  ///   kNotFound           a file or device of the configuration is not there.
  ///   kUnavailable        the port cannot be bound.
  ///   kResourceExhausted  a configured table needs more memory than there is.
  ///   kAlreadyExists      it is configured twice, differently.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const config::v1::ServerConfig& config);

  /// Drains without delay, cancels what is under way, and waits.
  ~Server();

  /// The port served; of no meaning for a socket.
  int port() const { return port_; }

  /// `host:port`, or `unix:path`.
  std::string address() const;

  /// Rows on their way to clients.
  const Staging& staging() const { return staging_; }

  /// The calls under way.
  const ActiveCalls& calls() const { return calls_; }

  /// What it serves.
  const TableRegistry& tables() const { return tables_; }

  /// Begins the drain, if it has not begun; returns at once.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);

  /// Returns when the drain is over.
  void Wait() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Server(ServerOptions options, std::unique_ptr<kernels::Backend> backend);

  static absl::StatusOr<std::unique_ptr<Server>> MakeTables(
      const ServerOptions& options);
  absl::Status CreateTables();
  absl::Status Listen();
  std::string AddressWith(int32_t port) const;
  void LogBackend() const;
  void SetHealth(bool serving);
  void RunDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitDrain() ABSL_LOCKS_EXCLUDED(mutex_);

  const ServerOptions options_;
  const std::unique_ptr<kernels::Backend> backend_;
  const std::unique_ptr<TimerQueue> timers_;
  TableRegistry tables_;
  ActiveCalls calls_;
  Staging staging_;
  RowService row_service_;
  EventService event_service_;
  TableService table_service_;
  ServerService server_service_;
  Mappings mappings_;
  Links links_;
  LmHeadService lm_head_service_;
  TransportService transport_service_;
  const std::unique_ptr<Checkpoints> checkpoints_;  // Null: none are offered.
  CheckpointService checkpoint_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> grpc_;
  std::vector<SocketPath> sockets_;  // While `grpc_` listens.

  Mutex mutex_;
  CondVar changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool at_once_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread drain_thread_;  // Started once served.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVER_H_
