#include "client/cli/surveying.h"

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {

absl::StatusOr<std::vector<client::ServerState>> SurveyCluster(
    const ConnectionFlags& flags, const std::string& table) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            ConnectLoosely(flags));
  return cluster->Survey({.timeout = flags.timeout(),
                          .cluster_id = flags.cluster_id,
                          .table = table});
}

int EndOfSurvey(const std::vector<client::ServerState>& servers) {
  int code = kOk;
  for (const client::ServerState& server : servers) {
    if (server.status.ok()) continue;
    const int fault = ExitCodeOf(server.status);
    code = code == kServerAway ? code : fault;
    std::cerr << "rowhouse: " << FaultText(server) << '\n';
    const std::string advice = AdviceOn(server.status, "", "");
    if (fault != kServerAway) std::cerr << "  " << advice << '\n';
  }
  if (code == kServerAway) {
    std::cerr << "  what they hold is not shown; start them, or correct "
                 "--servers\n";
  }
  return code;
}

std::string FaultText(const client::ServerState& server) {
  const std::string message(server.status.message());
  const std::string line = message.substr(0, message.find('\n'));
  if (absl::IsFailedPrecondition(server.status)) return line;  // Names it.
  return absl::StrCat(server.address, ": ", line);
}

}  // namespace rowhouse::cli
