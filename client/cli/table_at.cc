#include "client/cli/table_at.h"

#include "absl/strings/numbers.h"
#include "client/cli/checks.h"
#include "client/cli/exit_code.h"

namespace rowhouse::cli {

absl::StatusOr<TableAt> ParseTableAt(const std::string& text) {
  const size_t at = text.find('@');
  TableAt table{.name = text.substr(0, at)};
  const std::string bad_name = CheckTableName(table.name);
  if (!bad_name.empty()) return BadArgument(bad_name);
  if (at == text.npos) return table;
  const std::string event = text.substr(at + 1);
  const std::string bad_event = AtLeast(0)(event);
  if (!bad_event.empty()) return BadArgument(bad_event);
  int64_t value = 0;
  if (absl::SimpleAtoi(event, &value)) table.event = value;
  return table;
}

std::string CheckTableAt(const std::string& text) {
  return std::string(ParseTableAt(text).status().message());
}

}  // namespace rowhouse::cli
