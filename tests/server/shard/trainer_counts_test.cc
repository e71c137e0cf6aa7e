#include "server/shard/trainer_counts.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

TEST(TrainerCountsTest, ACountHoldsFromItsEventOn) {
  TrainerCounts counts(2);
  ASSERT_THAT(counts.Set({5, 7}, 0), IsOk());
  EXPECT_EQ(counts.At(1), 2);
  EXPECT_EQ(counts.At(4), 2);
  EXPECT_EQ(counts.At(5), 7);
  EXPECT_EQ(counts.At(1'000'000), 7);
}

TEST(TrainerCountsTest, MostLooksAheadOnly) {
  TrainerCounts counts(9);
  ASSERT_THAT(counts.Set({5, 3}, 0), IsOk());
  ASSERT_THAT(counts.Set({8, 4}, 0), IsOk());
  EXPECT_EQ(counts.MostFrom(1), 9);
  EXPECT_EQ(counts.MostFrom(5), 4);
}

TEST(TrainerCountsTest, EventsThatMayHavePartsAreTooLate) {
  TrainerCounts counts(2);
  EXPECT_THAT(counts.Set({6, 3}, 4), Fails(kPrecondition, "EVENT_PAST"));
  EXPECT_THAT(counts.Set({7, 3}, 4), IsOk());
}

TEST(TrainerCountsTest, AChangeReplacesLaterOnes) {
  TrainerCounts counts(2);
  ASSERT_THAT(counts.Set({5, 3}, 0), IsOk());
  ASSERT_THAT(counts.Set({9, 4}, 0), IsOk());
  ASSERT_THAT(counts.Set({7, 6}, 0), IsOk());
  EXPECT_EQ(counts.At(6), 3);
  EXPECT_EQ(counts.At(20), 6);
  ASSERT_THAT(counts.Set({5, 8}, 0), IsOk());
  EXPECT_THAT(counts.changes(), SizeIs(2));
  EXPECT_EQ(counts.At(5), 8);
}

TEST(TrainerCountsTest, TheSameChangeAgainIsOkAndChangesNothing) {
  TrainerCounts counts(2);
  ASSERT_THAT(counts.Set({3, 5}, 0), IsOk());
  ASSERT_THAT(counts.Set({9, 6}, 4), IsOk());
  EXPECT_THAT(counts.Set({3, 5}, 4), IsOk());
  EXPECT_EQ(counts.At(9), 6);
  EXPECT_THAT(counts.Set({3, 4}, 4), Fails(kPrecondition, "EVENT_PAST"));
}

TEST(TrainerCountsTest, CountsLieInTheirRange) {
  TrainerCounts counts(2);
  EXPECT_THAT(counts.Set({5, 0}, 0), Fails(kInvalid, "BAD_COUNT"));
  EXPECT_THAT(counts.Set({5, 4097}, 0), Fails(kInvalid, "BAD_COUNT"));
  EXPECT_THAT(counts.Set({5, 4096}, 0), IsOk());
  EXPECT_THAT(counts.Set({0, 5}, 0), Fails(kInvalid, "BAD_EVENT"));
}

TEST(TrainerCountsTest, ChangesThatChangeNothingAreNotKept) {
  TrainerCounts counts(2);
  for (int64_t event = 3; event < 5000; ++event) {
    ASSERT_THAT(counts.Set({event, 2}, 0), IsOk());
  }
  EXPECT_THAT(counts.changes(), SizeIs(1));
}

TEST(TrainerCountsTest, TooManyChangesAreRefusedAndChangeNothing) {
  TrainerCounts counts(1);
  for (int32_t i = 1; i < TrainerCounts::kMostChanges; ++i) {
    ASSERT_THAT(counts.Set({10 * i, 1 + i % 2}, 0), IsOk());
  }
  EXPECT_THAT(
      counts.Set({1'000'000, 7}, 0),
      Fails(absl::StatusCode::kResourceExhausted, "TRAINER_COUNTS_FULL"));
  EXPECT_EQ(counts.At(2'000'000), 2);
}

}  // namespace
}  // namespace rowhouse::server
