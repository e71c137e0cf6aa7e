#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "client/internal/shard_channel.h"
#include "grpcpp/channel.h"

namespace rowhouse::client::internal {

/// A server over gRPC. The first connection carries the small calls too; bulk
/// calls take turns on all. Rows are sent from page-locked memory of `device`,
/// unless that is null.
///
/// REQUIRES: at least one connection.
std::unique_ptr<ShardChannel> MakeGrpcShardChannel(
    std::string address,
    const std::vector<std::shared_ptr<grpc::Channel>>& connections,
    std::shared_ptr<kernels::Backend> device = nullptr);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_SHARD_CHANNEL_H_
