#ifndef ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_
#define ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// Reasons of `BadArgument` with advice of their own.
inline constexpr std::string_view kBadConnectionFlags = "BAD_CONNECTION_FLAGS";
inline constexpr std::string_view kBadRowFile = "BAD_ROW_FILE";
inline constexpr std::string_view kBadSpecFile = "BAD_SPEC_FILE";

/// What to do next about a fault, as a sentence without its stop; empty where
/// there is nothing to say, which is never so for wrong arguments. `table`: the
/// one that the command named, if any. `command`: its name, or empty.
std::string AdviceOn(const absl::Status& status, const std::string& table,
                     const std::string& command);

/// `status`, of a read that may have waited for `event`: a deadline that passed
/// meanwhile is the event's, EVENT_PENDING, not a server's.
absl::Status WhileWaiting(const absl::Status& status,
                          const std::optional<int64_t>& event);

/// A fault of the arguments: `kBadArguments`. Without a reason the advice is
/// the command's help.
absl::Status BadArgument(const std::string& message,
                         std::string_view reason = "");

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_EXIT_CODE_H_
