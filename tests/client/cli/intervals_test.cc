#include "client/cli/intervals.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/random.h"

namespace rowhouse::cli {
namespace {

using rowhouse::testing::Random;
using ::testing::IsEmpty;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

std::vector<Interval> Of(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<Interval> intervals;
  for (const auto& [begin, end] : pairs) {
    intervals.push_back({At(begin), At(end)});
  }
  return intervals;
}

TEST(IntervalsTest, AUnionIsSortedAndApart) {
  EXPECT_EQ(UnionOf(Of({{5, 7}, {1, 3}, {2, 4}, {9, 9}, {7, 8}, {1, 2}})),
            Of({{1, 4}, {5, 8}}));
  EXPECT_THAT(UnionOf({}), IsEmpty());
  EXPECT_THAT(UnionOf(Of({{4, 4}})), IsEmpty());
}

TEST(IntervalsTest, WhatIsCommonLiesInBoth) {
  EXPECT_EQ(Common(Of({{1, 4}, {6, 9}}), Of({{0, 2}, {3, 7}, {8, 12}})),
            Of({{1, 2}, {3, 4}, {6, 7}, {8, 9}}));
  EXPECT_THAT(Common(Of({{1, 4}}), Of({{4, 5}})), IsEmpty());
  EXPECT_THAT(Common(Of({{1, 4}}), {}), IsEmpty());
}

TEST(IntervalsTest, LengthsAddUp) {
  EXPECT_EQ(LengthOf(Of({{1, 4}, {6, 9}})), absl::Seconds(6));
  EXPECT_EQ(LengthOf({}), absl::ZeroDuration());
}

// Against a count of the seconds that lie in each.
TEST(IntervalsTest, AnyIntervalsAreCountedRight) {
  Random random(20261130);
  SCOPED_TRACE(random.Trace());
  constexpr int kSeconds = 40;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::vector<Interval>> lists(2);
    std::vector<std::vector<bool>> covered(2, std::vector<bool>(kSeconds));
    for (int list = 0; list < 2; ++list) {
      const int64_t count = random.Integer(0, 6);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t begin = random.Integer(0, kSeconds);
        const int64_t end = random.Integer(begin, kSeconds);
        lists[list].push_back({At(begin), At(end)});
        for (int64_t second = begin; second < end; ++second) {
          covered[list][second] = true;
        }
      }
    }
    int64_t both = 0;
    int64_t first = 0;
    for (int second = 0; second < kSeconds; ++second) {
      first += covered[0][second] ? 1 : 0;
      both += covered[0][second] && covered[1][second] ? 1 : 0;
    }
    const std::vector<Interval> a = UnionOf(lists[0]);
    const std::vector<Interval> b = UnionOf(lists[1]);
    ASSERT_EQ(LengthOf(a), absl::Seconds(first)) << "case " << i;
    ASSERT_EQ(LengthOf(Common(a, b)), absl::Seconds(both)) << "case " << i;
    ASSERT_EQ(Common(b, a), Common(a, b)) << "case " << i;
  }
}

}  // namespace
}  // namespace rowhouse::cli
