#include "client/cli/table_argument.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::cli {
namespace {

using ::testing::HasSubstr;

TEST(TableArgumentTest, ANumberMayFollowTheName) {
  const auto bare = ParseTableArgument("words", '@', 0);
  ASSERT_THAT(bare, testing::IsOk());
  EXPECT_EQ(bare->name, "words");
  EXPECT_EQ(bare->number, std::nullopt);
  const auto numbered = ParseTableArgument("words@1000", '@', 0);
  ASSERT_THAT(numbered, testing::IsOk());
  EXPECT_EQ(numbered->name, "words");
  EXPECT_EQ(numbered->number, 1000);
}

TEST(TableArgumentTest, TellsWhatIsWrong) {
  const Check check = CheckTableArgument(':', 1);
  EXPECT_EQ(check("words"), "");
  EXPECT_EQ(check("words:1"), "");
  EXPECT_THAT(check("words:0"), HasSubstr("'0', wanted a whole number"));
  EXPECT_THAT(check("words:"), HasSubstr("wanted a whole number"));
  EXPECT_THAT(check("words:1:2"), HasSubstr("'1:2', wanted a whole number"));
  EXPECT_THAT(check(":1"), HasSubstr("no table's name"));
  EXPECT_THAT(check("words@1"), HasSubstr("'words@1' is no table's name"));
}

}  // namespace
}  // namespace rowhouse::cli
