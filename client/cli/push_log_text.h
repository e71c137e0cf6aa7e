#ifndef ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_
#define ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/cli/json.h"
#include "client/push_log/push_log.h"

namespace rowhouse::cli {

/// Of the events after `start_event`: `no event`, `event 3`, `events 3 to 7`.
std::string EventsText(int64_t start_event, int64_t last_event);

/// `270 events, 540 parts, 1,234,567 rows`.
std::string CountsText(const client::push_log::LogCounts& counts);

/// `010f0686faf2f76b at event 271`.
std::string DigestText(const client::TableDigest& digest);

/// A line on the last digest of a recording of `table`, or on why it has none;
/// empty where none was wanted.
std::string EndDigestText(const client::push_log::RecordReport& report,
                          const std::string& table);

/// Lines on what the bits of a log's head parts depend on; empty without any.
std::string ArithmeticText(const client::push_log::LogInfo& info);

Json ToJson(const client::push_log::LogCounts& counts);
Json ToJson(const client::TableDigest& digest);
/// Null for none.
Json ToJson(const std::optional<client::TableDigest>& digest);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_PUSH_LOG_TEXT_H_
