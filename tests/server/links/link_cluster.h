#ifndef ROWHOUSE_TESTS_SERVER_LINKS_LINK_CLUSTER_H_
#define ROWHOUSE_TESTS_SERVER_LINKS_LINK_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/internal/link_channel.h"
#include "rowhouse/cluster.h"
#include "rowhouse/config/v1/server_config.pb.h"

namespace rowhouse::testing {

/// The configuration of server `index` of `count`, on a free port of the
/// loopback and the first GPU, that offers links of small pieces.
config::v1::ServerConfig LinkConfig(const std::string& backend,
                                    int32_t index = 0, int32_t count = 1);

/// A client of servers of the cluster "test", on the second GPU, that takes
/// links and waits for them, and no one-sided path.
std::unique_ptr<client::Cluster> LinkTo(
    const std::vector<std::string>& addresses);

/// The channel with links of a client that may have them.
client::internal::LinkChannel& LinksOf(const client::Cluster& cluster,
                                       int32_t server = 0);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_LINKS_LINK_CLUSTER_H_
