#include "proto/wire/placement.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::wire {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Random;
using ::rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

// Bounds ascend from 0 to the row count, and at every border the shard is the
// one that owns the row.
void ExpectSound(const Placement& placement, int64_t row_count,
                 int32_t shard_count) {
  ASSERT_EQ(placement.shard_count(), shard_count);
  ASSERT_EQ(placement.first_row(0), 0);
  ASSERT_EQ(placement.end_row(shard_count - 1), row_count);
  ASSERT_EQ(placement.row_count(), row_count);
  for (int32_t shard = 0; shard < shard_count; ++shard) {
    const int64_t first = placement.first_row(shard);
    const int64_t end = placement.end_row(shard);
    ASSERT_LE(first, end);
    if (first == end) continue;
    ASSERT_EQ(placement.ShardOf(first), shard);
    ASSERT_EQ(placement.ShardOf(end - 1), shard);
    ASSERT_EQ(placement.ShardOf(first + (end - first) / 2), shard);
  }
}

TEST(PlacementTest, SplitsEvenlyByTheStatedFormula) {
  EXPECT_THAT(Placement::Even(10, 3).bounds(), ElementsAre(0, 3, 6, 10));
  EXPECT_THAT(Placement::Even(8, 4).bounds(), ElementsAre(0, 2, 4, 6, 8));
}

TEST(PlacementTest, OwnsEachRowOnceAtTheBorders) {
  const Placement placement = Placement::Even(10, 3);
  EXPECT_EQ(placement.ShardOf(0), 0);
  EXPECT_EQ(placement.ShardOf(2), 0);
  EXPECT_EQ(placement.ShardOf(3), 1);
  EXPECT_EQ(placement.ShardOf(5), 1);
  EXPECT_EQ(placement.ShardOf(6), 2);
  EXPECT_EQ(placement.ShardOf(9), 2);
}

TEST(PlacementTest, LeavesShardsEmptyWhereRowsAreFew) {
  const Placement placement = Placement::Even(2, 5);
  EXPECT_THAT(placement.bounds(), ElementsAre(0, 0, 0, 1, 1, 2));
  EXPECT_EQ(placement.ShardOf(0), 2);
  EXPECT_EQ(placement.ShardOf(1), 4);
}

TEST(PlacementTest, AnEmptyTableHasEmptyShards) {
  EXPECT_THAT(Placement::Even(0, 2).bounds(), ElementsAre(0, 0, 0));
}

TEST(PlacementTest, IsExactWhereProductsPassSixtyFourBits) {
  ExpectSound(Placement::Even(int64_t{1} << 40, 4096), int64_t{1} << 40, 4096);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ExpectSound(Placement::Even(kMost, 3), kMost, 3);
  EXPECT_THAT(Placement::Even(kMost, 2).bounds(),
              ElementsAre(0, kMost / 2, kMost));
}

TEST(PlacementTest, AnySplitCoversTheTableInOrder) {
  Random random(17);
  SCOPED_TRACE(random.Trace());
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t row_count =
        random.Integer(0, int64_t{1} << random.Integer(1, 62));
    const auto shard_count = static_cast<int32_t>(random.Integer(1, 300));
    ExpectSound(Placement::Even(row_count, shard_count), row_count,
                shard_count);
  }
}

TEST(PlacementTest, TakesExplicitBoundsWithEmptyShards) {
  const auto placement =
      Placement::Explicit(10, std::vector<int64_t>{0, 0, 4, 4, 10, 10});
  ASSERT_THAT(placement, IsOk());
  ExpectSound(*placement, 10, 5);
  EXPECT_EQ(placement->ShardOf(0), 1);
  EXPECT_EQ(placement->ShardOf(4), 3);
  EXPECT_EQ(placement->ShardOf(9), 3);
}

TEST(PlacementTest, NamesTheFirstBadBound) {
  const auto refused = [](const std::vector<int64_t>& bounds) {
    const absl::Status status = Placement::Explicit(10, bounds).status();
    EXPECT_EQ(ReasonOf(status), "BAD_BOUNDS");
    return status;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(refused({}), StatusIs(kInvalid, "0 bounds"));
  EXPECT_THAT(refused({0}), StatusIs(kInvalid, "1 bounds"));
  EXPECT_THAT(refused({1, 10}), StatusIs(kInvalid, "bound 0 is 1"));
  EXPECT_THAT(refused({0, 5, 4, 10}), StatusIs(kInvalid, "bound 2 is 4"));
  EXPECT_THAT(refused({0, -1, 10}), StatusIs(kInvalid, "bound 1 is -1"));
  EXPECT_THAT(refused({0, 11, 10}), StatusIs(kInvalid, "bound 1 is 11"));
  EXPECT_THAT(refused({0, 5, 9}), StatusIs(kInvalid, "bound 2 is 9"));
}

}  // namespace
}  // namespace rowhouse::wire
