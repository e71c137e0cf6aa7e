#ifndef ROWHOUSE_CLIENT_CLI_ROW_IDS_H_
#define ROWHOUSE_CLIENT_CLI_ROW_IDS_H_

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::cli {

/// Consecutive row ids: [first, end).
struct RowIdRange {
  int64_t first = 0;
  int64_t end = 0;

  int64_t size() const { return end - first; }
  friend bool operator==(const RowIdRange&, const RowIdRange&) = default;
};

/// `7`, or `10-19` with both ends in it; several with commas between them.
///
/// Errors:
///   kInvalidArgument  it is none; names it.
absl::StatusOr<std::vector<RowIdRange>> ParseRowIds(std::string_view text);

/// Of words between spaces and line ends; `#` and what follows on its line is
/// left out.
absl::StatusOr<std::vector<RowIdRange>> ReadRowIds(std::istream& in);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_ROW_IDS_H_
