#ifndef ROWHOUSE_SERVER_CONFIG_H_
#define ROWHOUSE_SERVER_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "server/checkpoints.h"
#include "server/in_flight.h"
#include "server/shard/shard.h"
#include "server/tls_files.h"
#include "server/transport/link_options.h"
#include "server/transport/one_sided_options.h"

namespace rowhouse::server {

/// A ServerConfig, checked, with defaults filled in.
struct ServerOptions {
  std::string cluster_id;
  int32_t server_index = 0;
  int32_t server_count = 1;
  /// As given; an IPv6 address in brackets; or `unix:` and a path, and no port.
  std::string listen_host;
  int32_t listen_port = 0;  ///< 0: any free one.
  std::vector<std::string> more_listen_addresses;
  std::optional<TlsOptions> tls;
  kernels::BackendOptions backend;
  int64_t memory_limit_bytes = 0;  ///< 0: what the device has to give.
  ShardLimits limits;
  OneSidedOptions one_sided;  ///< Offered where `limits.one_sided`.
  LinkOptions links;
  InFlight::Limits in_flight;
  std::optional<CheckpointOptions> checkpoints;  ///< Not set: none.
  absl::Duration drain_delay;
  absl::Duration drain_timeout;
  std::vector<config::v1::TableConfig> tables;
};

/// Reads a textproto file.
///
/// Errors:
///   kNotFound         the file cannot be read.
///   kInvalidArgument  it is a directory, or does not parse; names file, line
///                     and column.
absl::StatusOr<config::v1::ServerConfig> LoadConfig(const std::string& path);

/// Errors:
///   kInvalidArgument  a field is out of range, a file that `tls` names is not
///                     what it should be, or checkpoints cannot be written to
///                     their directory; names it.
///   kNotFound         a file that `tls` names cannot be read.
absl::StatusOr<ServerOptions> ToOptions(const config::v1::ServerConfig& config);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CONFIG_H_
