#ifndef ROWHOUSE_CLIENT_CLI_CONNECTION_H_
#define ROWHOUSE_CLIENT_CLI_CONNECTION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/cluster.h"

namespace rowhouse::cli {

/// What is said where no server is named; kInvalidArgument.
absl::Status NoServers();

/// The flags that say which cluster, and how to reach it.
struct ConnectionFlags {
  std::vector<std::string> servers;  ///< In shard order.
  std::string cluster_id;
  std::optional<double> timeout_seconds = std::nullopt;
  bool tls = false;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_server_name;
  bool no_one_sided = false;  ///< Rows travel over gRPC.

  /// For servers to answer.
  absl::Duration timeout() const {
    return absl::Seconds(timeout_seconds.value_or(10));
  }
  /// The same for calls with much to do: longer, unless a time was given.
  absl::Duration work_timeout() const {
    return absl::Seconds(timeout_seconds.value_or(60));
  }
};

/// The client's options; reads the TLS files.
///
/// Errors:
///   kInvalidArgument  no server, an address that is none, or a file that
///                     cannot be read.
absl::StatusOr<client::ClusterOptions> ToOptions(const ConnectionFlags& flags);

/// Connects to all servers. Fails at once when one is away.
///
/// Errors: those of `ToOptions` and `Cluster::Connect`; kUnavailable names all
/// servers that are away.
absl::StatusOr<std::unique_ptr<client::Cluster>> Connect(
    const ConnectionFlags& flags);

/// For a survey: calls no server.
///
/// Errors: those of `ToOptions`.
absl::StatusOr<std::unique_ptr<client::Cluster>> ConnectLoosely(
    const ConnectionFlags& flags);

/// What is said of a server that does not answer; kUnavailable.
absl::Status AwayError(const std::vector<client::ServerState>& servers);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CONNECTION_H_
