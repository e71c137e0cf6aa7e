#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_ROWS_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_ROWS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/shard_channel.h"
#include "grpcpp/channel.h"
#include "proto/wire/block_pool.h"

namespace rowhouse::client::internal {

/// Makes one PullRows call. Rows go from where gRPC received them straight to
/// `sink`.
absl::StatusOr<PullAnswer> PullOverGrpc(
    const std::shared_ptr<grpc::Channel>& channel, const PullCall& pull,
    RowSink sink, const CallContext& context);

/// Memory of one message's rows, for the pool of `PushOverGrpc`: page-locked
/// memory of `device`, unless that is null.
absl::StatusOr<wire::BlockPool::Memory> MakeSendBlock(
    const std::shared_ptr<kernels::Backend>& device);

/// Makes one PushGradients call. Rows are copied once, to blocks that gRPC
/// sends from; so the caller's buffer is free when this returns, also where a
/// server that reads no more holds up what was sent. Those of a device come
/// while the ones before are sent.
absl::StatusOr<PushAnswer> PushOverGrpc(
    const std::shared_ptr<grpc::Channel>& channel, const PushCall& push,
    wire::BlockPool& blocks, const CallContext& context);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_ROWS_H_
