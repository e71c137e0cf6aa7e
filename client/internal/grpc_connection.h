#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_CONNECTION_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_CONNECTION_H_

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "grpcpp/channel.h"
#include "rowhouse/v1/checkpoint_service.grpc.pb.h"
#include "rowhouse/v1/event_service.grpc.pb.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"
#include "rowhouse/v1/row_service.grpc.pb.h"
#include "rowhouse/v1/server_service.grpc.pb.h"
#include "rowhouse/v1/table_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// For how long gRPC tries to connect; a next try begins as soon.
constexpr absl::Duration kConnectAttempt = absl::Seconds(1);

/// A connection to a server, with the services' stubs.
struct GrpcConnection {
  explicit GrpcConnection(std::shared_ptr<grpc::Channel> to_server)
      : channel(std::move(to_server)),
        servers(channel),
        tables(channel),
        events(channel),
        rows(channel),
        heads(channel),
        checkpoints(channel) {}

  /// Gives a connection that has failed the time of one more attempt; returns
  /// at once for any other. To be called before each call: one on a failed
  /// connection fails at once, and gRPC brings connections on only while some
  /// thread of the process is in a call. A caller that is alone, and sleeps
  /// between its tries, would not connect.
  void AwaitReconnect(const CallContext& context);

  const std::shared_ptr<grpc::Channel> channel;
  v1::ServerService::Stub servers;
  v1::TableService::Stub tables;
  v1::EventService::Stub events;
  v1::RowService::Stub rows;
  v1::LmHeadService::Stub heads;
  v1::CheckpointService::Stub checkpoints;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_CONNECTION_H_
