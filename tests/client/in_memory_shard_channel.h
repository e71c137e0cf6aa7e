#ifndef ROWHOUSE_TESTS_CLIENT_IN_MEMORY_SHARD_CHANNEL_H_
#define ROWHOUSE_TESTS_CLIENT_IN_MEMORY_SHARD_CHANNEL_H_

#include <cstdint>
#include <memory>

#include "client/internal/shard_channel.h"
#include "tests/client/in_memory_cluster.h"

namespace rowhouse::testing {

/// A channel to one server of `cluster`, which outlives it; `hook` may be null.
std::unique_ptr<client::internal::ShardChannel> MakeInMemoryShardChannel(
    InMemoryCluster& cluster, int32_t server, FaultHook hook);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_IN_MEMORY_SHARD_CHANNEL_H_
