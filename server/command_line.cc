#include "server/command_line.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/wire/status_macros.h"
#include "server/config.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

ABSL_FLAG(std::string, config, "",
          "File of the server's configuration, a textproto of "
          "rowhouse.config.v1.ServerConfig. Required.");
ABSL_FLAG(absl::optional<std::string>, listen, absl::nullopt,
          "Address to listen on, host:port or unix:PATH, in place of "
          "listen_address; port 0 picks a free one.");
ABSL_FLAG(absl::optional<int32_t>, server_index, absl::nullopt,
          "Index of this server in its cluster, in place of server_index.");
ABSL_FLAG(absl::optional<std::string>, backend, absl::nullopt,
          "cpu or cuda, in place of backend.");
ABSL_FLAG(absl::optional<int32_t>, device, absl::nullopt,
          "Device of the cuda backend, in place of device_index.");
ABSL_FLAG(std::string, log_level, "info",
          "Least severe messages on stderr: debug, info, warn or error.");

namespace rowhouse::server {
namespace {

constexpr std::array kFlagNames = {"config",  "listen", "server_index",
                                   "backend", "device", "log_level"};

bool IsFlag(std::string_view name) {
  for (const std::string_view known : kFlagNames) {
    if (name == known) return true;
  }
  return false;
}

absl::Status SetFlag(const std::string& name, const std::string& value) {
  std::string error;
  if (absl::FindCommandLineFlag(name)->ParseFrom(value, &error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", name, " has the value '", value, "', which does not parse",
      error.empty() ? "" : ": ", error));
}

}  // namespace

absl::StatusOr<Task> ParseCommandLine(std::span<const char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help") return Task::kHelp;
    if (argument == "--version") return Task::kVersion;
    const size_t equals = argument.find('=');
    const std::string text(argument);
    if (!argument.starts_with("--") ||
        !IsFlag(argument.substr(
            2, equals == argument.npos ? equals : equals - 2))) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not a flag of rowhouse-server"));
    }
    if (equals != argument.npos) {
      ROWHOUSE_RETURN_IF_ERROR(
          SetFlag(text.substr(2, equals - 2), text.substr(equals + 1)));
    } else if (i + 1 < arguments.size()) {
      ROWHOUSE_RETURN_IF_ERROR(SetFlag(text.substr(2), arguments[++i]));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(text, " has no value"));
    }
  }
  return Task::kServe;
}

std::string HelpText() {
  std::string text =
      "rowhouse-server: serves one shard of each table of a cluster.\n\n"
      "Usage: rowhouse-server --config=FILE [--flag=value]...\n\n";
  for (const char* name : kFlagNames) {
    absl::StrAppend(&text, "  --", name, "\n      ",
                    absl::FindCommandLineFlag(name)->Help(), "\n");
  }
  absl::StrAppend(
      &text,
      "  --help\n      Prints this text.\n"
      "  --version\n      Prints the version.\n\n"
      "Prints 'rowhouse-server listening on ADDRESS' on stdout once it "
      "serves.\n"
      "SIGTERM or SIGINT drains it; a second one ends it at once.\n\n"
      "Exit codes:\n"
      "  0  drained, or --help or --version\n"
      "  1  a fault at run time, or ended before it had drained\n"
      "  2  bad flags or configuration, with the files and tables it names\n"
      "  3  the port cannot be bound\n");
  return text;
}

absl::StatusOr<config::v1::ServerConfig> ConfigFromFlags() {
  const std::string path = absl::GetFlag(FLAGS_config);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "--config is not set; it must name a file");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(config::v1::ServerConfig config, LoadConfig(path));
  const auto listen = absl::GetFlag(FLAGS_listen);
  if (listen.has_value()) config.set_listen_address(*listen);
  const auto server_index = absl::GetFlag(FLAGS_server_index);
  if (server_index.has_value()) config.set_server_index(*server_index);
  const auto backend = absl::GetFlag(FLAGS_backend);
  if (backend.has_value()) config.set_backend(*backend);
  const auto device = absl::GetFlag(FLAGS_device);
  if (device.has_value()) config.set_device_index(*device);
  return config;
}

absl::Status StartLogging() {
  const std::string name = absl::GetFlag(FLAGS_log_level);
  if (name != "debug" && name != "info" && name != "warn" && name != "error") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log_level is '", name, "'; it must be debug, info, warn or error"));
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("rowhouse-server"));
  spdlog::set_level(spdlog::level::from_str(name));
  return absl::OkStatus();
}

}  // namespace rowhouse::server
