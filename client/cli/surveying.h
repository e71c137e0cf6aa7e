#ifndef ROWHOUSE_CLIENT_CLI_SURVEYING_H_
#define ROWHOUSE_CLIENT_CLI_SURVEYING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/connection.h"

namespace rowhouse::cli {

/// Asks all servers; those that are away are told in the result.
///
/// Errors: those of `ToOptions`.
absl::StatusOr<std::vector<client::ServerState>> SurveyCluster(
    const ConnectionFlags& flags, const std::string& table = "");

/// The exit code of a command that shows what a survey told: that of the worst
/// fault. Says on stderr which servers are missing from what was shown.
int EndOfSurvey(const std::vector<client::ServerState>& servers);

/// The first line of what a server's fault says, for a person.
std::string FaultText(const client::ServerState& server);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_SURVEYING_H_
