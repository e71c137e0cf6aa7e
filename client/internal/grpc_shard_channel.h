#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "client/internal/shard_channel.h"
#include "grpcpp/channel.h"

namespace rowhouse::client::internal {

/// A server over gRPC. The first connection carries the small calls too; bulk
/// calls take turns on all.
///
/// REQUIRES: at least one connection.
std::unique_ptr<ShardChannel> MakeGrpcShardChannel(
    std::string address,
    const std::vector<std::shared_ptr<grpc::Channel>>& connections);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_
