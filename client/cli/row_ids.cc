#include "client/cli/row_ids.h"

#include <limits>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

absl::Status Bad(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "', wanted a row id such as 7 or a range such as 10-19"));
}

bool ParseId(const std::string& text, int64_t& id) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' &&
         absl::SimpleAtoi(text, &id);
}

absl::StatusOr<RowIdRange> ParseRange(const std::string& text) {
  const size_t dash = text.find('-');
  RowIdRange range;
  if (!ParseId(text.substr(0, dash), range.first)) return Bad(text);
  int64_t last = range.first;
  if (dash != text.npos && !ParseId(text.substr(dash + 1), last)) {
    return Bad(text);
  }
  if (last < range.first || last == std::numeric_limits<int64_t>::max()) {
    return Bad(text);
  }
  range.end = last + 1;
  return range;
}

}  // namespace

absl::StatusOr<std::vector<RowIdRange>> ParseRowIds(std::string_view text) {
  std::vector<RowIdRange> ranges;
  const std::string owned(text);
  for (const absl::string_view piece : absl::StrSplit(owned, ',')) {
    ROWHOUSE_ASSIGN_OR_RETURN(const RowIdRange range,
                              ParseRange(std::string(piece)));
    ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<std::vector<RowIdRange>> ReadRowIds(std::istream& in) {
  std::vector<RowIdRange> ranges;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    while (words >> word) {
      ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<RowIdRange> found,
                                ParseRowIds(word));
      ranges.insert(ranges.end(), found.begin(), found.end());
    }
  }
  return ranges;
}

}  // namespace rowhouse::cli
