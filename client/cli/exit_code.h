#ifndef ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_
#define ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace rowhouse::cli {

// What the process ends with; `--help` and README.md say so too.
inline constexpr int kOk = 0;
inline constexpr int kRefused = 1;
inline constexpr int kBadArguments = 2;
inline constexpr int kServerAway = 3;
inline constexpr int kInterrupted = 130;

/// Of a command that ended with `status`.
int ExitCodeOf(const absl::Status& status);

/// What to do next about a fault, as a sentence without its stop; empty where
/// there is nothing to say. `table`: the one that the command named, if any.
std::string AdviceOn(const absl::Status& status, const std::string& table);

/// `status`, of a read that may have waited for `event`: a deadline that passed
/// meanwhile is the event's, EVENT_PENDING, not a server's.
absl::Status WhileWaiting(const absl::Status& status,
                          const std::optional<int64_t>& event);

/// A fault of the arguments: `kBadArguments`.
absl::Status BadArgument(const std::string& message);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_
