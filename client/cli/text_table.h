#ifndef ROWHOUSE_CLIENT_CLI_TEXT_TABLE_H_
#define ROWHOUSE_CLIENT_CLI_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rowhouse::cli {

enum class Align : uint8_t { kLeft, kRight };

enum class Style : uint8_t { kPlain, kGood, kBad, kFaint };

/// `text` with the terminal's colour for `style`.
std::string Colored(const std::string& text, Style style);

/// A field of a table.
struct Cell {
  Cell(std::string cell_text, Style cell_style = Style::kPlain)  // NOLINT
      : text(std::move(cell_text)), style(cell_style) {}
  Cell(const char* cell_text)
      : text(cell_text) {}  // NOLINT: so rows read well.

  std::string text;
  Style style = Style::kPlain;
};

/// Columns that line up, two spaces between them, under a head line.
class TextTable {
 public:
  struct Column {
    std::string name;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns)
      : columns_(std::move(columns)) {}

  bool empty() const { return rows_.empty(); }

  /// REQUIRES: at most as many cells as columns.
  void AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

  /// Lines, each with its end, without trailing spaces.
  std::string ToString(bool color) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TEXT_TABLE_H_
