#include "client/cli/row_ids.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RowIdsTest, IdsAndRangesAreRead) {
  EXPECT_THAT(*ParseRowIds("7"), ElementsAre(RowIdRange{7, 8}));
  EXPECT_THAT(*ParseRowIds("10-19,0"),
              ElementsAre(RowIdRange{10, 20}, RowIdRange{0, 1}));
  EXPECT_EQ(ParseRowIds("10-19")->front().size(), 10);
}

TEST(RowIdsTest, WhatIsNoIdIsNamed) {
  for (const char* text :
       {"", "x", "-1", "1-", "5-3", "1,,2", "1.5", "9223372036854775807"}) {
    EXPECT_THAT(ParseRowIds(text),
                rowhouse::testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                            "wanted a row id"))
        << text;
  }
}

TEST(RowIdsTest, AStreamHasWordsAndComments) {
  std::istringstream in("3 4-5\n# none\n\n9 # hot\n");
  EXPECT_THAT(*ReadRowIds(in), ElementsAre(RowIdRange{3, 4}, RowIdRange{4, 6},
                                           RowIdRange{9, 10}));
  std::istringstream empty("");
  EXPECT_THAT(*ReadRowIds(empty), IsEmpty());
}

}  // namespace
}  // namespace rowhouse::cli
