#include "server/config.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/file.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"
#include "server/service/spec_validation.h"
#include "server/socket_path.h"

namespace rowhouse::server {
namespace {

using config::v1::ServerConfig;
using google::protobuf::Duration;

constexpr int64_t kMaxServerCount = 65536;
constexpr int64_t kMaxCount = 1 << 20;  // Of tasks, reads, pulls and threads.
constexpr absl::Duration kMaxDuration = absl::Hours(24);

absl::Status Bad(std::string_view field, const std::string& found,
                 std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(field), " is ", found, "; it must be ", std::string(wanted)));
}

absl::Status CheckRange(std::string_view field, int64_t value, int64_t low,
                        int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Bad(field, absl::StrCat(value),
             absl::StrCat("in [", low, ", ", high, "]"));
}

absl::StatusOr<absl::Duration> ToDuration(std::string_view field,
                                          const Duration& proto,
                                          absl::Duration least) {
  const absl::Duration duration =
      absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
  if (duration >= least && duration <= kMaxDuration) return duration;
  return Bad(field, absl::FormatDuration(duration),
             absl::StrCat("in [", absl::FormatDuration(least), ", ",
                          absl::FormatDuration(kMaxDuration), "]"));
}

absl::Status ResolveCluster(const ServerConfig& config,
                            ServerOptions& options) {
  if (config.cluster_id().empty() || config.cluster_id().size() > 256) {
    return Bad("cluster_id", Quoted(config.cluster_id()),
               "a text of 1 to 256 bytes");
  }
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("server_count", config.server_count(), 1, kMaxServerCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("server_index", config.server_index(), 0,
                                      config.server_count() - 1));
  options.cluster_id = config.cluster_id();
  options.server_index = config.server_index();
  options.server_count = config.server_count();
  return absl::OkStatus();
}

constexpr std::string_view kUnix = "unix:";

absl::Status CheckSocket(std::string_view field, const std::string& address) {
  const std::string_view path = std::string_view(address).substr(kUnix.size());
  if (path.starts_with('/') && path.size() <= SocketPath::kMostBytes) {
    return absl::OkStatus();
  }
  return Bad(field, Quoted(address),
             absl::StrCat("unix: and an absolute path of at most ",
                          SocketPath::kMostBytes, " bytes"));
}

struct HostPort {
  std::string host;  // A socket whole.
  int32_t port = 0;
};

absl::StatusOr<HostPort> ParseAddress(std::string_view field,
                                      const std::string& address,
                                      int32_t least_port) {
  if (address.starts_with(kUnix)) {
    ROWHOUSE_RETURN_IF_ERROR(CheckSocket(field, address));
    return HostPort{address, 0};
  }
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const bool bare_ipv6 = host.find(':') != std::string::npos &&
                         !(host.front() == '[' && host.back() == ']');
  int32_t port = -1;
  if (colon == std::string::npos || colon == 0 || bare_ipv6 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < least_port || port > 65535) {
    return Bad(field, Quoted(address),
               absl::StrCat("host:port, with an IPv6 address in brackets and a "
                            "port in [",
                            least_port, ", 65535], or unix: and a path"));
  }
  return HostPort{host, port};
}

absl::Status ResolveAddresses(const ServerConfig& config,
                              ServerOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      HostPort first,
      ParseAddress("listen_address",
                   config.listen_address().empty() ? "127.0.0.1:0"
                                                   : config.listen_address(),
                   0));
  options.listen_host = std::move(first.host);
  options.listen_port = first.port;
  for (int i = 0; i < config.more_listen_addresses_size(); ++i) {
    const std::string& address = config.more_listen_addresses(i);
    ROWHOUSE_RETURN_IF_ERROR(
        ParseAddress(absl::StrCat("more_listen_addresses[", i, "]"), address, 1)
            .status());
    options.more_listen_addresses.push_back(address);
  }
  return absl::OkStatus();
}

absl::Status ResolveInFlight(const ServerConfig& config,
                             InFlight::Limits& limits) {
  // Room for one message, and for the one that is read while it is written.
  constexpr int64_t kLeast = 2 * kMaxPayloadBytes;
  const auto resolve = [](std::string_view field, int64_t value,
                          int64_t& limit) -> absl::Status {
    if (value == 0) return absl::OkStatus();
    ROWHOUSE_RETURN_IF_ERROR(
        CheckRange(field, value, kLeast, int64_t{1} << 60));
    limit = value;
    return absl::OkStatus();
  };
  ROWHOUSE_RETURN_IF_ERROR(resolve(
      "max_in_flight_bytes", config.max_in_flight_bytes(), limits.total_bytes));
  return resolve("max_client_in_flight_bytes",
                 config.max_client_in_flight_bytes(), limits.client_bytes);
}

absl::Status ResolveBackend(const ServerConfig& config,
                            ServerOptions& options) {
  if (config.backend() == "cuda") {
    options.backend.kind = kernels::BackendKind::kCuda;
  } else if (!config.backend().empty() && config.backend() != "cpu") {
    return Bad("backend", Quoted(config.backend()), "'cpu' or 'cuda'");
  }
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("device_index", config.device_index(), 0, 1023));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("thread_count", config.thread_count(), 0, kMaxCount));
  options.backend.device_index = config.device_index();
  options.backend.thread_count = config.thread_count();
  ROWHOUSE_RETURN_IF_ERROR(CheckRange(
      "memory_limit_bytes", config.memory_limit_bytes(), 0, int64_t{1} << 60));
  options.memory_limit_bytes = config.memory_limit_bytes();
  return absl::OkStatus();
}

// A GPU's products need larger blocks, and it has room for its logits.
void SetHeadDefaults(kernels::BackendKind backend, ShardLimits& limits) {
  if (backend != kernels::BackendKind::kCuda) return;
  limits.head_blocks = {8192, 16000};
  limits.logits_budget_bytes = int64_t{4} << 30;
}

absl::Status ResolveHead(const ServerConfig& config, ShardLimits& limits) {
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("head_token_block", config.head_token_block(), 0, kMaxCount));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("head_row_block", config.head_row_block(), 0, kMaxCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("max_anonymous_head_call_count",
                                      config.max_anonymous_head_call_count(), 0,
                                      kMaxCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("logits_budget_bytes",
                                      config.logits_budget_bytes(), 0,
                                      int64_t{1} << 60));
  if (config.has_logits_budget_bytes()) {
    limits.logits_budget_bytes = config.logits_budget_bytes();
  }
  if (config.head_token_block() > 0) {
    limits.head_blocks.token_count = config.head_token_block();
  }
  if (config.head_row_block() > 0) {
    limits.head_blocks.row_count = config.head_row_block();
  }
  if (config.max_anonymous_head_call_count() > 0) {
    limits.max_anonymous_head_call_count =
        config.max_anonymous_head_call_count();
  }
  return absl::OkStatus();
}

absl::Status ResolveLimits(const ServerConfig& config, ShardLimits& limits) {
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("lane_capacity", config.lane_capacity(), 0, kMaxCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange(
      "max_parked_read_count", config.max_parked_read_count(), 0, kMaxCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("max_anonymous_pull_count",
                                      config.max_anonymous_pull_count(), 0,
                                      kMaxCount));
  if (config.lane_capacity() > 0) limits.lane_capacity = config.lane_capacity();
  if (config.max_parked_read_count() > 0) {
    limits.max_parked_read_count = config.max_parked_read_count();
  }
  if (config.max_anonymous_pull_count() > 0) {
    limits.max_anonymous_pull_count = config.max_anonymous_pull_count();
  }
  ROWHOUSE_RETURN_IF_ERROR(ResolveHead(config, limits));
  if (config.has_max_wait_duration()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        limits.max_wait,
        ToDuration("max_wait_duration", config.max_wait_duration(),
                   absl::Milliseconds(1)));
  }
  if (config.has_lease_duration()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        limits.lease, ToDuration("lease_duration", config.lease_duration(),
                                 absl::Milliseconds(1)));
  }
  return absl::OkStatus();
}

absl::Status ResolveDrain(const ServerConfig& config, ServerOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      options.drain_delay,
      ToDuration("drain_delay_duration", config.drain_delay_duration(),
                 absl::ZeroDuration()));
  options.drain_timeout = absl::Seconds(30);
  if (!config.has_drain_timeout_duration()) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      options.drain_timeout,
      ToDuration("drain_timeout_duration", config.drain_timeout_duration(),
                 absl::ZeroDuration()));
  return absl::OkStatus();
}

absl::Status ResolveOneSided(const ServerConfig& config,
                             ServerOptions& options) {
  const bool cuda = options.backend.kind == kernels::BackendKind::kCuda;
  options.one_sided.backend = cuda ? "cuda" : "cpu";
  if (!config.has_one_sided()) return absl::OkStatus();
  options.limits.one_sided = true;
  const config::v1::OneSidedConfig& one_sided = config.one_sided();
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("one_sided.max_inbox_bytes",
                                      one_sided.max_inbox_bytes(), 0,
                                      int64_t{1} << 60));
  if (one_sided.max_inbox_bytes() > 0) {
    options.one_sided.max_inbox_bytes = one_sided.max_inbox_bytes();
  }
  if (!one_sided.has_allocation_timeout_duration()) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(options.one_sided.allocation_timeout,
                            ToDuration("one_sided.allocation_timeout_duration",
                                       one_sided.allocation_timeout_duration(),
                                       absl::ZeroDuration()));
  return absl::OkStatus();
}

absl::Status ResolveLinks(const ServerConfig& config, LinkOptions& links) {
  if (!config.has_nccl()) return absl::OkStatus();
  links.offered = true;
  const config::v1::NcclConfig& nccl = config.nccl();
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("nccl.block_bytes", nccl.block_bytes(), 0, int64_t{1} << 40));
  if (nccl.block_bytes() > 0) links.block_bytes = nccl.block_bytes();
  if (nccl.has_join_timeout_duration()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        links.join_timeout,
        ToDuration("nccl.join_timeout_duration", nccl.join_timeout_duration(),
                   absl::Milliseconds(1)));
  }
  if (nccl.has_stall_timeout_duration()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        links.stall_timeout,
        ToDuration("nccl.stall_timeout_duration", nccl.stall_timeout_duration(),
                   absl::Milliseconds(1)));
  }
  return absl::OkStatus();
}

absl::Status ResolveCheckpoints(const ServerConfig& config,
                                ServerOptions& options) {
  if (!config.has_checkpoint()) return absl::OkStatus();
  const config::v1::CheckpointConfig& checkpoint = config.checkpoint();
  ROWHOUSE_RETURN_IF_ERROR(CheckDirectory(checkpoint.directory()));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("checkpoint.keep_count",
                                      checkpoint.keep_count(), 0,
                                      std::numeric_limits<int32_t>::max()));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("checkpoint.buffer_bytes",
                                      checkpoint.buffer_bytes(), 0,
                                      int64_t{1} << 60));
  CheckpointOptions& resolved = options.checkpoints.emplace();
  resolved.directory = checkpoint.directory();
  resolved.keep_count = checkpoint.keep_count();
  if (checkpoint.buffer_bytes() > 0) {
    resolved.buffer_bytes = checkpoint.buffer_bytes();
  }
  return absl::OkStatus();
}

absl::Status ResolveTables(const ServerConfig& config, ServerOptions& options) {
  for (int i = 0; i < config.tables_size(); ++i) {
    const config::v1::TableConfig& table = config.tables(i);
    absl::Status status = CheckTableName(table.name());
    if (status.ok()) {
      status = CanonicalSpec(table.spec(), config.server_count()).status();
    }
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("tables[", i, "]: ", status.message()));
    }
    options.tables.push_back(table);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerConfig> LoadConfig(const std::string& path) {
  ServerConfig config;
  ROWHOUSE_RETURN_IF_ERROR(wire::ReadTextProto(path, config));
  return config;
}

absl::StatusOr<ServerOptions> ToOptions(const ServerConfig& config) {
  ServerOptions options;
  ROWHOUSE_RETURN_IF_ERROR(ResolveCluster(config, options));
  ROWHOUSE_RETURN_IF_ERROR(ResolveAddresses(config, options));
  ROWHOUSE_RETURN_IF_ERROR(ResolveInFlight(config, options.in_flight));
  if (config.has_tls()) {
    ROWHOUSE_ASSIGN_OR_RETURN(options.tls, LoadTls(config.tls()));
  }
  ROWHOUSE_RETURN_IF_ERROR(ResolveBackend(config, options));
  SetHeadDefaults(options.backend.kind, options.limits);
  ROWHOUSE_RETURN_IF_ERROR(ResolveLimits(config, options.limits));
  ROWHOUSE_RETURN_IF_ERROR(ResolveDrain(config, options));
  ROWHOUSE_RETURN_IF_ERROR(ResolveOneSided(config, options));
  ROWHOUSE_RETURN_IF_ERROR(ResolveLinks(config, options.links));
  ROWHOUSE_RETURN_IF_ERROR(ResolveCheckpoints(config, options));
  ROWHOUSE_RETURN_IF_ERROR(ResolveTables(config, options));
  return options;
}

}  // namespace rowhouse::server
