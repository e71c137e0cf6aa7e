#include "client/cli/table_argument.h"

#include "absl/strings/numbers.h"
#include "client/cli/exit_code.h"

namespace rowhouse::cli {

absl::StatusOr<TableArgument> ParseTableArgument(const std::string& text,
                                                 char separator,
                                                 int64_t least) {
  const size_t at = text.find(separator);
  TableArgument table{.name = text.substr(0, at)};
  const std::string bad_name = CheckTableName(table.name);
  if (!bad_name.empty()) return BadArgument(bad_name);
  if (at == text.npos) return table;
  const std::string digits = text.substr(at + 1);
  const std::string bad_number = AtLeast(least)(digits);
  if (!bad_number.empty()) return BadArgument(bad_number);
  int64_t number = 0;
  if (absl::SimpleAtoi(digits, &number)) table.number = number;
  return table;
}

Check CheckTableArgument(char separator, int64_t least) {
  return [separator, least](const std::string& text) {
    return std::string(
        ParseTableArgument(text, separator, least).status().message());
  };
}

}  // namespace rowhouse::cli
