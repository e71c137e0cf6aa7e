#include "client/cli/text_table.h"

#include <algorithm>
#include <cstddef>

namespace rowhouse::cli {
namespace {

const char* CodeOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kGood:
      return "\033[32m";
    case Style::kBad:
      return "\033[31m";
    case Style::kFaint:
      return "\033[2m";
  }
  return "";
}

}  // namespace

std::string Colored(const std::string& text, Style style) {
  if (style == Style::kPlain || text.empty()) return text;
  return CodeOf(style) + text + "\033[0m";
}

std::string TextTable::ToString(bool color) const {
  std::vector<size_t> widths;
  std::vector<Cell> head;
  for (const Column& column : columns_) {
    head.emplace_back(column.name, Style::kFaint);
    widths.push_back(column.name.size());
  }
  for (const std::vector<Cell>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].text.size());
    }
  }
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& row) {
    size_t owed = 0;  // Spaces before the next text: none at a line's end.
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string& text = row[i].text;
      const size_t room = widths[i] - text.size();
      const bool right = columns_[i].align == Align::kRight;
      if (!text.empty()) {
        out.append(owed + (right ? room : 0), ' ');
        out += color ? Colored(text, row[i].style) : text;
        owed = right ? 0 : room;
      } else {
        owed += room;
      }
      owed += 2;
    }
    out += '\n';
  };
  add_line(head);
  for (const std::vector<Cell>& row : rows_) add_line(row);
  return out;
}

}  // namespace rowhouse::cli
