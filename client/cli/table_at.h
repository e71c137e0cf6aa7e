#ifndef ROWHOUSE_CLIENT_CLI_TABLE_AT_H_
#define ROWHOUSE_CLIENT_CLI_TABLE_AT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace rowhouse::cli {

/// A table as of an event, or of any.
struct TableAt {
  std::string name;
  std::optional<int64_t> event = std::nullopt;
};

/// Reads `ngram@1000`, or `ngram`.
///
/// Errors:
///   kInvalidArgument  no table's name, or no event.
absl::StatusOr<TableAt> ParseTableAt(const std::string& text);

/// The same as a `Check`.
std::string CheckTableAt(const std::string& text);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TABLE_AT_H_
