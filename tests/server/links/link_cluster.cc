#include "tests/server/links/link_cluster.h"

#include <cstdlib>
#include <utility>

#include "absl/time/time.h"
#include "client/internal/cluster_core.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

bool HasSecondGpu() {
  return kernels::MakeBackend({.kind = kernels::BackendKind::kCuda,
                               .device_index = kernels::SecondGpu()})
      .ok();
}

}  // namespace

config::v1::ServerConfig LinkConfig(const std::string& backend, int32_t index,
                                    int32_t count) {
  config::v1::ServerConfig config = OneSidedConfig(backend, index, count);
  config.clear_one_sided();
  // A few rows; not whole ones.
  config.mutable_nccl()->set_block_bytes(1000);
  return config;
}

std::unique_ptr<client::Cluster> LinkTo(
    const std::vector<std::string>& addresses) {
  client::ClusterOptions options;
  options.addresses = addresses;
  options.cluster_id = "test";
  options.one_sided.allow = false;
  if (HasSecondGpu()) options.device_index = kernels::SecondGpu();
  options.nccl.least_row_count = 0;
  options.nccl.patience = absl::Seconds(60);
  absl::StatusOr<std::unique_ptr<client::Cluster>> cluster =
      client::Cluster::Connect(options);
  EXPECT_THAT(cluster, IsOk());
  if (!cluster.ok()) std::abort();
  return *std::move(cluster);
}

client::internal::LinkChannel& LinksOf(const client::Cluster& cluster,
                                       int32_t server) {
  return dynamic_cast<client::internal::LinkChannel&>(
      cluster.core()->channel(server));
}

}  // namespace rowhouse::testing
