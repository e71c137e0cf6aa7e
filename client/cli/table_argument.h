#ifndef ROWHOUSE_CLIENT_CLI_TABLE_ARGUMENT_H_
#define ROWHOUSE_CLIENT_CLI_TABLE_ARGUMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/checks.h"

namespace rowhouse::cli {

/// A table, and a number that may follow its name.
struct TableArgument {
  std::string name;
  std::optional<int64_t> number = std::nullopt;
};

/// Reads `words`, or `words@1000` where `separator` is '@'; the number is at
/// least `least`.
///
/// Errors:
///   kInvalidArgument  no table's name, or no such number.
absl::StatusOr<TableArgument> ParseTableArgument(const std::string& text,
                                                 char separator, int64_t least);

/// The same as a `Check`.
Check CheckTableArgument(char separator, int64_t least);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TABLE_ARGUMENT_H_
