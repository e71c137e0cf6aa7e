#include "client/cli/text_table.h"

#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

TextTable Fruits() {
  TextTable table({{"name"}, {"count", Align::kRight}, {"note"}});
  table.AddRow({"fig", "7", ""});
  table.AddRow({"a melon", "1200", "ripe"});
  return table;
}

TEST(TextTableTest, ColumnsLineUp) {
  EXPECT_EQ(Fruits().ToString(false),
            "name     count  note\n"
            "fig          7\n"
            "a melon   1200  ripe\n");
}

TEST(TextTableTest, ARowMayEndEarly) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_TRUE(table.empty());
  table.AddRow({"long text"});
  EXPECT_EQ(table.ToString(false),
            "a          b\n"
            "long text\n");
}

TEST(TextTableTest, AnEmptyCellKeepsItsRoom) {
  TextTable table({{"a"}, {"b"}, {"c"}});
  table.AddRow({"1", "", "3"});
  EXPECT_EQ(table.ToString(false),
            "a  b  c\n"
            "1     3\n");
}

TEST(TextTableTest, ColorsDoNotMoveColumns) {
  TextTable table({{"state"}, {"n"}});
  table.AddRow({Cell("away", Style::kBad), "1"});
  EXPECT_EQ(table.ToString(true),
            "\033[2mstate\033[0m  \033[2mn\033[0m\n"
            "\033[31maway\033[0m   1\n");
}

}  // namespace
}  // namespace rowhouse::cli
