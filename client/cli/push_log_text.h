#ifndef ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_
#define ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_

#include <optional>
#include <string>

#include "client/cli/json.h"
#include "client/push_log/push_log.h"

namespace rowhouse::cli {

/// `270 events, 540 parts, 1,234,567 rows`.
std::string CountsText(const client::push_log::LogCounts& counts);

/// `010f0686faf2f76b at event 271`.
std::string DigestText(const client::TableDigest& digest);

Json ToJson(const client::push_log::LogCounts& counts);
Json ToJson(const client::TableDigest& digest);
/// Null for none.
Json ToJson(const std::optional<client::TableDigest>& digest);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_
