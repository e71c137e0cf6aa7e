#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_CHECKPOINT_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_CHECKPOINT_CHANNEL_H_

#include <memory>

#include "client/internal/checkpoint_channel.h"
#include "client/internal/grpc_connection.h"

namespace rowhouse::client::internal {

/// A server's checkpoints over gRPC, on `connection`, which must outlive it.
std::unique_ptr<CheckpointChannel> MakeGrpcCheckpointChannel(
    GrpcConnection& connection);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_CHECKPOINT_CHANNEL_H_
