#include "tests/server/one_sided/one_sided_cluster.h"

#include <cstdlib>
#include <utility>

#include "gtest/gtest.h"
#include "proto/wire/status_macros.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {

config::v1::ServerConfig OneSidedConfig(const std::string& backend,
                                        int32_t index, int32_t count) {
  config::v1::ServerConfig config;
  config.set_cluster_id("test");
  config.set_server_index(index);
  config.set_server_count(count);
  config.set_listen_address("127.0.0.1:0");
  config.set_backend(backend);
  config.set_thread_count(1);
  config.set_memory_limit_bytes(int64_t{1} << 28);
  config.mutable_one_sided();
  return config;
}

int ClientDevice() {
  const char* const device = std::getenv("ROWHOUSE_TEST_CLIENT_DEVICE");
  return device == nullptr ? 0 : std::atoi(device);
}

std::unique_ptr<client::Cluster> ConnectTo(
    const std::vector<std::string>& addresses, bool one_sided,
    std::optional<int> device_index, client::Observer observer) {
  client::ClusterOptions options;
  options.addresses = addresses;
  options.cluster_id = "test";
  options.one_sided.allow = one_sided;
  options.device_index = device_index;
  if (ClientDevice() != 0) options.device_index = ClientDevice();
  options.nccl.allow = false;
  options.observer = std::move(observer);
  absl::StatusOr<std::unique_ptr<client::Cluster>> cluster =
      client::Cluster::Connect(options);
  EXPECT_THAT(cluster, IsOk());
  if (!cluster.ok()) std::abort();
  return *std::move(cluster);
}

client::internal::OneSidedChannel& ChannelOf(const client::Cluster& cluster,
                                             int32_t server) {
  return dynamic_cast<client::internal::OneSidedChannel&>(
      cluster.core()->channel(server));
}

client::TableSpec SmallSpec(int64_t row_count, int32_t shard_count) {
  client::TableSpec spec;
  spec.row_count = row_count;
  spec.dim = 2;
  spec.row_dtype = client::DType::kFp32;
  spec.gradient_dtype = client::DType::kFp32;
  spec.shard_count = shard_count;
  spec.gradient_reduction = client::GradientReduction::kSum;
  spec.max_contribution_row_count = 100;
  spec.max_part_count = 8;
  spec.max_pull_bytes = 1 << 20;
  return spec;
}

client::RowAdamScalars SignStep() {
  return {.step_size = 1, .decay = 0, .beta2 = 0, .eps = 0};
}

absl::StatusOr<std::vector<float>> PullFloats(
    client::Trainer& trainer, const std::vector<int64_t>& row_ids,
    const client::PullOptions& options) {
  std::vector<float> out(row_ids.size() * trainer.table().spec.dim, -99);
  ROWHOUSE_RETURN_IF_ERROR(
      trainer.Pull(row_ids, std::as_writable_bytes(std::span(out)), options)
          .status());
  return out;
}

absl::Status ApplyEvent(client::Trainer& trainer, int64_t event,
                        const std::vector<int64_t>& row_ids) {
  const std::vector<float> ones(row_ids.size() * trainer.table().spec.dim, 1);
  ROWHOUSE_RETURN_IF_ERROR(
      trainer.Push(event, row_ids, std::as_bytes(std::span(ones))).status());
  ROWHOUSE_RETURN_IF_ERROR(trainer.SealAndCommit(event, SignStep()));
  return trainer.WaitForEvent(event);
}

}  // namespace rowhouse::testing
