#include "tests/server/backends/backend_cluster.h"

#include <cstdlib>
#include <utility>

#include "proto/wire/status_macros.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "tests/kernels/require_gpu.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {

absl::StatusOr<BackendCluster> BackendCluster::Start(
    const std::string& backend, int32_t server_count,
    int64_t memory_limit_bytes, const std::string& checkpoints) {
  BackendCluster made;
  client::ClusterOptions options;
  for (int32_t index = 0; index < server_count; ++index) {
    config::v1::ServerConfig config;
    config.set_cluster_id("test");
    config.set_server_index(index);
    config.set_server_count(server_count);
    config.set_listen_address("127.0.0.1:0");
    config.set_backend(backend);
    config.set_thread_count(1);
    config.set_memory_limit_bytes(memory_limit_bytes);
    if (!checkpoints.empty()) {
      config.mutable_checkpoint()->set_directory(checkpoints);
    }
    ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<server::Server> server,
                              server::Server::Start(config));
    options.addresses.push_back(server->address());
    made.servers_.push_back(std::move(server));
  }
  ROWHOUSE_ASSIGN_OR_RETURN(made.cluster_, client::Cluster::Connect(options));
  return made;
}

void OnBackendTest::SetUp() {
  if (std::string(GetParam()) != "cuda") return;
  const absl::Status made =
      kernels::MakeBackend({.kind = kernels::BackendKind::kCuda}).status();
  if (kernels::MayLackGpu(made)) GTEST_SKIP() << made;
  ASSERT_THAT(made, IsOk());
}

BackendCluster OnBackendTest::Servers(const std::string& backend,
                                      int32_t server_count,
                                      int64_t memory_limit_bytes,
                                      const std::string& checkpoints) {
  absl::StatusOr<BackendCluster> started = BackendCluster::Start(
      backend, server_count, memory_limit_bytes, checkpoints);
  EXPECT_THAT(started, IsOk());
  if (!started.ok()) std::abort();
  return *std::move(started);
}

}  // namespace rowhouse::testing
