#ifndef ROWHOUSE_SERVER_COMMAND_LINE_H_
#define ROWHOUSE_SERVER_COMMAND_LINE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/config/v1/server_config.pb.h"

namespace rowhouse::server {

/// What the process has to do.
enum class Task { kServe, kHelp, kVersion };

/// Sets the flags from `--name=value` and `--name value`. Not absl's own
/// parser: that one ends the process, with a code of its own.
///
/// Errors:
///   kInvalidArgument  names the argument that is unknown or has a bad value.
absl::StatusOr<Task> ParseCommandLine(std::span<const char* const> arguments);

/// What `--help` prints: flags and exit codes.
std::string HelpText();

/// The file of `--config`, with the other flags in the place of its fields.
///
/// Errors: those of `LoadConfig`, and
///   kInvalidArgument  `--config` is not set.
absl::StatusOr<config::v1::ServerConfig> ConfigFromFlags();

/// Logs to stderr from `--log_level` on.
///
/// Errors:
///   kInvalidArgument  there is no such level.
absl::Status StartLogging();

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_COMMAND_LINE_H_
