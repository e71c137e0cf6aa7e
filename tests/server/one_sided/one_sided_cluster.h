#ifndef ROWHOUSE_TESTS_SERVER_ONE_SIDED_ONE_SIDED_CLUSTER_H_
#define ROWHOUSE_TESTS_SERVER_ONE_SIDED_ONE_SIDED_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/internal/cluster_core.h"
#include "client/internal/one_sided_channel.h"
#include "rowhouse/cluster.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "rowhouse/trainer.h"

namespace rowhouse::testing {

/// The configuration of server `index` of `count`, on a free port of the
/// loopback, that offers the one-sided path.
config::v1::ServerConfig OneSidedConfig(const std::string& backend,
                                        int32_t index = 0, int32_t count = 1);

/// The GPU of clients: that of ROWHOUSE_TEST_CLIENT_DEVICE, or the first.
int ClientDevice();

/// A client of servers of the cluster "test", without links, that may pass
/// memory of a GPU.
std::unique_ptr<client::Cluster> ConnectTo(
    const std::vector<std::string>& addresses, bool one_sided = true,
    std::optional<int> device_index = std::nullopt,
    client::Observer observer = nullptr);

/// The one-sided channel of a client that may have one.
client::internal::OneSidedChannel& ChannelOf(const client::Cluster& cluster,
                                             int32_t server = 0);

/// `row_count` rows of 2 fp32, zeros, on `shard_count` servers; gradients are
/// added, for one trainer.
client::TableSpec SmallSpec(int64_t row_count = 8, int32_t shard_count = 1);

/// With these a row's weights move by -sign(gradient).
client::RowAdamScalars SignStep();

/// Rows as floats, or an error.
absl::StatusOr<std::vector<float>> PullFloats(
    client::Trainer& trainer, const std::vector<int64_t>& row_ids,
    const client::PullOptions& options = {});

/// Pushes (1, 1) for each row and applies `event`, which is sealed by it.
absl::Status ApplyEvent(client::Trainer& trainer, int64_t event,
                        const std::vector<int64_t>& row_ids);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_ONE_SIDED_ONE_SIDED_CLUSTER_H_
