// What an event does to rows, and how it comes about.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ShardEventTest : public ShardTest {};

TEST_F(ShardEventTest, AppliesSealedContributionsAtTheCommit) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 4)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 1), IsOk());
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  EXPECT_EQ(*shard_->Commit(kRank0, 1, Commit()), false);
  EXPECT_EQ(AppliedEvent(), 1);
  // v = mean square 0.5; u = 1 / sqrt(0.5).
  EXPECT_THAT(Row(3), ElementsAre(-1.41421354F, 0));
  EXPECT_THAT(Row(4), ElementsAre(-1.41421354F, 0));
  EXPECT_THAT(Row(5), ElementsAre(0, 0));
}

TEST_F(ShardEventTest, TheAnswerOfACommitComesBeforeTheEventIsApplied) {
  StartWithSessions();
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  server::PullRequest request;
  request.min_event = 1;
  auto waiting = shard_->StartPull({1}, request);
  Pending<bool> waited;
  owned_->Commit(
      kRank0, 1, Commit(), BlockingShard::NewCall(),
      [waiting, callback = waited.Callback()](absl::StatusOr<bool>) mutable {
        callback(waiting.IsDone());
      });
  EXPECT_FALSE(waited.Wait());
  EXPECT_THAT(waiting.Wait(), IsOk());
}

TEST_F(ShardEventTest, RefusedCommitsChangeNothing) {
  StartWithSessions();
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()),
              Fails(kPrecondition, "NOT_SEALED"));
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit({1, 2})),
              Fails(kPrecondition, "SESSIONS_DIFFER"));
  EXPECT_THAT(shard_->Commit(kRank0, 2, Commit()),
              Fails(kPrecondition, "EVENT_AHEAD"));
  EXPECT_EQ(AppliedEvent(), 0);
}

TEST_F(ShardEventTest, ARepeatedCommitIsADuplicateAndAnotherDiffers) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  EXPECT_EQ(*shard_->Commit(kRank0, 1, Commit()), true);
  server::EventCommit other = Commit();
  other.scalars.step_size = 2;
  EXPECT_THAT(shard_->Commit(kRank0, 1, other),
              Fails(absl::StatusCode::kAlreadyExists, "COMMIT_DIFFERS"));
  EXPECT_EQ(AppliedEvent(), 1);
}

TEST_F(ShardEventTest, ASkippedEventAdvancesTheNumberAndNoOtherBit) {
  StartWithSessions();
  const auto before = shard_->Digest();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  server::EventCommit skip = Commit();
  skip.skip = true;
  ASSERT_THAT(shard_->Commit(kRank0, 1, skip), IsOk());
  const auto after = shard_->Digest();
  EXPECT_EQ(after->event, 1);
  EXPECT_EQ(after->row_sum, before->row_sum);
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  const auto state = shard_->GetEventState();
  EXPECT_TRUE(state->applied_events[0].commit.skip);
  EXPECT_EQ(state->applied_events[0].report.entry_count, 0);
}

TEST_F(ShardEventTest, TheReportCountsEntriesAndRows) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {3, 5, 3};
  part.rows = Floats({1, 0, 1, 0, 1, 0});
  part.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(part), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  const auto state = shard_->GetEventState();
  ASSERT_THAT(state->applied_events, SizeIs(1));
  EXPECT_EQ(state->applied_events[0].report.entry_count, 3);
  EXPECT_EQ(state->applied_events[0].report.row_visits, 2);
}

TEST_F(ShardEventTest, ATableThatAveragesDividesByTheTrainers) {
  // With eps far above the root of v, the step follows the gradient's size.
  server::EventCommit commit = Commit();
  commit.scalars.eps = 1 << 20;
  commit.scalars.step_size = 1 << 20;
  const auto step = [&](server::GradientReduction reduction) {
    spec_.reduction = reduction;
    StartWithSessions();
    PartToPush part = OneRow(kRank0, 1, 0, 3);
    part.seal_part_count = 1;
    EXPECT_THAT(shard_->Push(part), IsOk());
    EXPECT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
    EXPECT_THAT(shard_->Commit(kRank0, 1, commit), IsOk());
    return Row(3)[0];
  };
  EXPECT_NEAR(step(server::GradientReduction::kSum), -1.0F, 1e-4F);
  EXPECT_NEAR(step(server::GradientReduction::kMean), -0.5F, 1e-4F);
}

TEST_F(ShardEventTest, PartsForTheEventAfterTheNextStayOpen) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  ASSERT_THAT(shard_->Seal(kRank0, 2, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 2, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 2, Commit()), IsOk());
  EXPECT_THAT(Row(3), ElementsAre(-1.41421354F, 0));
}

TEST_F(ShardEventTest, TheOrderOfArrivalChangesNoBit) {
  const auto digest_of = [&](bool reversed) {
    StartWithSessions();
    std::vector<PartToPush> parts;
    for (int32_t rank = 0; rank < 2; ++rank) {
      for (int32_t number = 0; number < 3; ++number) {
        PartToPush part = OneRow({rank, 1}, 1, number, 3);
        // Sums of these depend on their order.
        part.rows = Floats({number == 1 ? 1e8F : 1.0F, rank == 0 ? 3e7F : 1});
        parts.push_back(part);
      }
    }
    if (reversed) std::reverse(parts.begin(), parts.end());
    for (const PartToPush& part : parts) {
      EXPECT_THAT(shard_->Push(part), IsOk());
    }
    EXPECT_THAT(shard_->Seal(kRank1, 1, 3), IsOk());
    EXPECT_THAT(shard_->Seal(kRank0, 1, 3), IsOk());
    EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
    return shard_->Digest()->row_sum;
  };
  EXPECT_EQ(digest_of(false), digest_of(true));
}

TEST_F(ShardEventTest, StatisticsComeOnceAllHaveSealed) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(part), IsOk());
  const auto early = shard_->GetEventStatistics(1);
  EXPECT_THAT(early, Fails(kPrecondition, "NOT_SEALED"));
  EXPECT_EQ(Detail(early, "trainer_rank"), "1");
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  const auto statistics = shard_->GetEventStatistics(1);
  ASSERT_THAT(statistics, IsOk());
  EXPECT_EQ(statistics->row_count, 1);
  EXPECT_EQ(statistics->significand_sums[127], 1 << 23);  // 1.0
  EXPECT_THAT(shard_->GetEventStatistics(2),
              Fails(kPrecondition, "EVENT_AHEAD"));
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_THAT(shard_->GetEventStatistics(1),
              Fails(kPrecondition, "EVENT_PAST"));
  EXPECT_THAT(shard_->GetEventStatistics(0),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_EVENT"));
}

TEST_F(ShardEventTest, ValuesNeverMakeACommitFail) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {3, 3, 4};
  part.rows = Floats({3e38F, 0, 3e38F, 0, 1, 0});
  part.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(part), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  EXPECT_THAT(Row(4), ElementsAre(-1.41421354F, 0));
  EXPECT_EQ(
      shard_->GetEventState()->applied_events[0].report.untouched_row_count, 1);
}

TEST_F(ShardEventTest, HistoryIsTheSameOnEveryShard) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  const uint64_t history_sum = shard_->Digest()->history_sum;
  spec_.placement = wire::Placement::Even(0, 1);
  StartWithSessions();
  ApplyEmptyEvent(1);
  EXPECT_EQ(shard_->Digest()->history_sum, history_sum);
  EXPECT_EQ(shard_->Digest()->row_sum, 0);
}

}  // namespace
}  // namespace rowhouse::testing
