#include "client/cli/connection.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/checks.h"
#include "client/cli/exit_code.h"
#include "proto/wire/file.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

absl::Status BadFlag(const std::string& message) {
  return BadArgument(message, kBadConnectionFlags);
}

absl::Status ReadTo(const std::string& path, std::string& out) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = wire::ReadFile(path);
  if (!text.ok()) return BadFlag(std::string(text.status().message()));
  out = *std::move(text);
  return absl::OkStatus();
}

}  // namespace

absl::Status NoServers() {
  return BadFlag(
      "no servers: give --servers=HOST:PORT,... in shard order, or set "
      "ROWHOUSE_SERVERS");
}

absl::StatusOr<client::ClusterOptions> ToOptions(const ConnectionFlags& flags) {
  if (flags.servers.empty()) return NoServers();
  client::ClusterOptions options;
  for (const std::string& text : flags.servers) {
    const std::string address(absl::StripAsciiWhitespace(text));
    const std::string fault = CheckAddress(address);
    if (!fault.empty()) return BadFlag("--servers has " + fault);
    options.addresses.push_back(address);
  }
  options.cluster_id = flags.cluster_id;
  options.connect_timeout = flags.timeout();
  options.one_sided.allow = !flags.no_one_sided;
  if (flags.tls_certificate.empty() != flags.tls_key.empty()) {
    return BadFlag(
        "--tls-certificate and --tls-key: one alone, wanted both or none");
  }
  if (!flags.tls && flags.tls_ca.empty() && flags.tls_certificate.empty() &&
      flags.tls_server_name.empty()) {
    return options;
  }
  client::TlsOptions& tls = options.tls.emplace();
  ROWHOUSE_RETURN_IF_ERROR(ReadTo(flags.tls_ca, tls.root_certificates));
  ROWHOUSE_RETURN_IF_ERROR(
      ReadTo(flags.tls_certificate, tls.certificate_chain));
  ROWHOUSE_RETURN_IF_ERROR(ReadTo(flags.tls_key, tls.private_key));
  tls.server_name = flags.tls_server_name;
  return options;
}

absl::StatusOr<std::unique_ptr<client::Cluster>> ConnectLoosely(
    const ConnectionFlags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(client::ClusterOptions options, ToOptions(flags));
  options.check_servers = false;
  return client::Cluster::Connect(options);
}

absl::Status AwayError(const std::vector<client::ServerState>& servers) {
  std::vector<std::string> away;
  for (const client::ServerState& server : servers) {
    if (!server.info.has_value()) away.push_back(server.address);
  }
  return absl::UnavailableError(
      absl::StrCat(away.size(), " of ", servers.size(),
                   " servers did not answer: ", absl::StrJoin(away, ", ")));
}

absl::StatusOr<std::unique_ptr<client::Cluster>> Connect(
    const ConnectionFlags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> loose,
                            ConnectLoosely(flags));
  const std::vector<client::ServerState> servers =
      loose->Survey({.timeout = flags.timeout(),
                     .cluster_id = flags.cluster_id,
                     .tables = false});
  for (const client::ServerState& server : servers) {
    if (!server.info.has_value()) return AwayError(servers);
  }
  for (const client::ServerState& server : servers) {
    ROWHOUSE_RETURN_IF_ERROR(server.status);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const client::ClusterOptions options,
                            ToOptions(flags));
  return client::Cluster::Connect(options);
}

}  // namespace rowhouse::cli
