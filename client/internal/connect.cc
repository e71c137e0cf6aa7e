#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/internal/cluster_core.h"
#include "client/internal/grpc_connection.h"
#include "client/internal/grpc_shard_channel.h"
#include "client/internal/link_channel.h"
#include "client/internal/map_backend.h"
#include "client/internal/observed_channel.h"
#include "client/internal/one_sided_channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/cluster.h"

namespace rowhouse::client {
namespace {

constexpr int32_t kMostConnections = 64;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

grpc::ChannelArguments MakeArguments(const ClusterOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The library backs off itself; a server that is back is found soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  const int attempt = Milliseconds(internal::kConnectAttempt);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, attempt);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, attempt);
  // Repeats are the library's: it knows what a repeat means.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(
    const ClusterOptions& options) {
  if (!options.tls.has_value()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.tls->root_certificates;
  ssl.pem_cert_chain = options.tls->certificate_chain;
  ssl.pem_private_key = options.tls->private_key;
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Connect(
    const ClusterOptions& options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError("no address, wanted one a server");
  }
  if (options.connection_count < 1 ||
      options.connection_count > kMostConnections) {
    return absl::InvalidArgumentError(
        absl::StrCat("connection_count ", options.connection_count,
                     ", wanted one in [1, ", kMostConnections, "]"));
  }
  const std::shared_ptr<grpc::ChannelCredentials> credentials =
      MakeCredentials(options);
  const grpc::ChannelArguments arguments = MakeArguments(options);
  const internal::MapBackend map_backend =
      internal::ShareMapBackends(options.device_index.value_or(0));
  std::shared_ptr<kernels::Backend> device;
  if (options.device_index.has_value()) {
    ROWHOUSE_ASSIGN_OR_RETURN(device, map_backend("cuda"));
  }
  std::vector<std::unique_ptr<internal::ShardChannel>> channels;
  for (const std::string& address : options.addresses) {
    std::vector<std::shared_ptr<grpc::Channel>> connections;
    for (int32_t i = 0; i < options.connection_count; ++i) {
      connections.push_back(
          grpc::CreateCustomChannel(address, credentials, arguments));
    }
    std::unique_ptr<internal::ShardChannel> channel =
        internal::MakeGrpcShardChannel(address, connections, device);
    if (options.nccl.allow) {
      channel = std::make_unique<internal::LinkChannel>(
          std::move(channel), connections.front(),
          internal::LinkSettings{
              .backend = map_backend,
              .device_index = options.device_index.value_or(0),
              .patience = options.nccl.patience},
          options.nccl.least_row_count);
    }
    if (options.one_sided.allow) {
      channel = std::make_unique<internal::OneSidedChannel>(
          std::move(channel), connections.front(), map_backend);
    }
    if (options.observer != nullptr) {
      channel = std::make_unique<internal::ObservedChannel>(
          std::move(channel), static_cast<int32_t>(channels.size()),
          options.observer);
    }
    channels.push_back(std::move(channel));
  }
  auto core = std::make_shared<internal::ClusterCore>(
      std::move(channels), internal::MakeSystemClock(), options.retry,
      std::move(device));
  if (options.check_servers) {
    ROWHOUSE_RETURN_IF_ERROR(core->CheckServers(
        options.cluster_id, core->Context(options.connect_timeout)));
  }
  return std::make_unique<Cluster>(std::move(core));
}

}  // namespace rowhouse::client
