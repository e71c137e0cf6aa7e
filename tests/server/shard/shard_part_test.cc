// Each part counts exactly once.

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_part_fixture.h"

namespace rowhouse::testing {
namespace {

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ShardPartTest : public PartTest {};

TEST_F(ShardPartTest, AnswersWithTheEventAndItsRows) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  const auto receipt = shard_->Push(OneRow(kRank0, 2, 0, 3));
  ASSERT_THAT(receipt, IsOk());
  EXPECT_EQ(receipt->event, 1);
  EXPECT_EQ(receipt->row_count, 1);
  EXPECT_FALSE(receipt->duplicate);
}

TEST_F(ShardPartTest, ARetryGetsTheFirstAnswerAndCountsOnce) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
  ApplyEmptyEvent(1);
  const auto again = shard_->Push(OneRow(kRank0, 2, 0, 3));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->event, 0);
  EXPECT_EQ(StagedRows(2, 0), 1);
}

TEST_F(ShardPartTest, OtherContentUnderTheNameIsRefused) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 4)),
              Fails(kExists, "PART_DIFFERS"));
  PartToPush rows = OneRow(kRank0, 1, 0, 3);
  rows.rows = Floats({2, 0});
  EXPECT_THAT(shard_->Push(rows), Fails(kExists, "PART_DIFFERS"));
  rows.rows = Floats({1, 0, 0, 0});
  rows.row_ids = {3, 3};
  EXPECT_THAT(shard_->Push(rows), Fails(kExists, "PART_DIFFERS"));
}

TEST_F(ShardPartTest, RowsSwappedWithTheirIdsAreOtherContent) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {3, 4};
  part.rows = Floats({1, 2, 3, 4});
  ASSERT_THAT(shard_->Push(part), IsOk());
  part.row_ids = {4, 3};
  part.rows = Floats({3, 4, 1, 2});
  EXPECT_THAT(shard_->Push(part), Fails(kExists, "PART_DIFFERS"));
}

TEST_F(ShardPartTest, TheCutIntoMessagesIsNoContent) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {3, 1, 9, 3, 0};
  part.rows = Floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  part.rows_per_message = 2;
  ASSERT_THAT(shard_->Push(part), IsOk());
  part.rows_per_message = 3;
  EXPECT_TRUE(shard_->Push(part)->duplicate);
}

TEST_F(ShardPartTest, TheLastTwoAppliedEventsAnswerFromTheLedger) {
  StartWithSessions();
  ApplyEventWithParts(1);
  ApplyEventWithParts(2);
  EXPECT_TRUE(shard_->Push(OneRow(kRank0, 1, 0, 3))->duplicate);
  EXPECT_TRUE(shard_->Push(OneRow(kRank1, 2, 0, 4))->duplicate);
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 5)),
              Fails(kExists, "PART_DIFFERS"));
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 2, 1, 3)),
              Fails(kPrecondition, "EVENT_PAST"));
}

TEST_F(ShardPartTest, OlderEventsAreDuplicatesWithoutALook) {
  StartWithSessions();
  for (int64_t event = 1; event <= 3; ++event) ApplyEventWithParts(event);
  PartToPush unknown = OneRow(kRank0, 1, 7, 5);
  const auto receipt = shard_->Push(unknown);
  ASSERT_THAT(receipt, IsOk());
  EXPECT_TRUE(receipt->duplicate);
  EXPECT_EQ(receipt->row_count, 1);
}

TEST_F(ShardPartTest, EventsPastTheNextTwoAreAhead) {
  StartWithSessions();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
  const auto ahead = shard_->Push(OneRow(kRank0, 3, 0, 3));
  EXPECT_THAT(ahead, Fails(kPrecondition, "EVENT_AHEAD"));
  EXPECT_EQ(Detail(ahead, "current_event"), "0");
}

TEST_F(ShardPartTest, ANewerLandingOfThePartSupersedesTheOlder) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto older = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**older, part), IsOk());
  auto newer = shard_->Begin(part);
  EXPECT_THAT(shard_->Finish(*std::move(older), part),
              Fails(kAborted, "SUPERSEDED"));
  ASSERT_THAT(shard_->Land(**newer, part), IsOk());
  EXPECT_FALSE(shard_->Finish(*std::move(newer), part)->duplicate);
  EXPECT_EQ(StagedRows(1, 0), 1);
}

TEST_F(ShardPartTest, ASupersededLandingStopsEarly) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  const auto older = shard_->Begin(part);
  const auto newer = shard_->Begin(part);
  EXPECT_THAT(shard_->Land(**older, part), Fails(kAborted, "SUPERSEDED"));
  EXPECT_THAT(shard_->Land(**newer, part), IsOk());
}

TEST_F(ShardPartTest, ASupersededLandingThatComesLateIsADuplicate) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto older = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**older, part), IsOk());
  ASSERT_THAT(shard_->Push(part), IsOk());
  EXPECT_TRUE(shard_->Finish(*std::move(older), part)->duplicate);
  EXPECT_EQ(StagedRows(1, 0), 1);
}

TEST_F(ShardPartTest, ASupersededLandingsRowsDoNotCount) {
  spec_.max_contribution_row_count = 1;
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  const auto older = shard_->Begin(part);
  EXPECT_THAT(shard_->Push(part), IsOk());
}

TEST_F(ShardPartTest, ARetrySucceedsThoughItsHandleHasExpired) {
  StartWithSessions();
  const PartToPush part = ByHandle(2);
  ASSERT_THAT(shard_->Push(part), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_TRUE(shard_->Push(part)->duplicate);
  PartToPush other = part;
  other.rows = Floats({1, 0, 0, 2});
  EXPECT_THAT(shard_->Push(other), Fails(kExists, "PART_DIFFERS"));
}

TEST_F(ShardPartTest, ARetryMaySendIdsInPlaceOfAnExpiredHandle) {
  StartWithSessions();
  PartToPush part = ByHandle(2);
  ASSERT_THAT(shard_->Push(part), IsOk());
  ApplyEmptyEvent(1);
  part.handles = {};
  part.row_ids = {6, 2};
  EXPECT_TRUE(shard_->Push(part)->duplicate);
  part.row_ids = {2, 6};
  EXPECT_THAT(shard_->Push(part), Fails(kExists, "PART_DIFFERS"));
}

TEST_F(ShardPartTest, ARetrySucceedsThoughTheContributionIsSealed) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  EXPECT_TRUE(shard_->Push(OneRow(kRank0, 1, 0, 3))->duplicate);
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 3)),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(ShardPartTest, APartThatLandsAcrossTheSealIsRefused) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  EXPECT_THAT(shard_->Finish(*std::move(landing), part),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(ShardPartTest, APartThatLandsAcrossItsEventIsPast) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Finish(*std::move(landing), part),
              Fails(kPrecondition, "EVENT_PAST"));
}

TEST_F(ShardPartTest, ASuccessorsRetryOfASealedPartGetsTheFirstAnswer) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_TRUE(shard_->Push(OneRow({0, 2}, 1, 0, 3))->duplicate);
}

TEST_F(ShardPartTest, APartMayCarryTheSeal) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.seal_part_count = 2;
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "PARTS_MISSING"));
  EXPECT_EQ(StagedRows(1, 0), 0);
  part.seal_part_count = 1;
  EXPECT_FALSE(shard_->Push(part)->duplicate);
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 3)),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(ShardPartTest, ARetryCompletesTheSealThatItsFirstSendingLost) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  ASSERT_THAT(shard_->Push(part), IsOk());
  part.seal_part_count = 1;
  EXPECT_TRUE(shard_->Push(part)->duplicate);
  EXPECT_TRUE(shard_->Push(part)->duplicate);
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 3)),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(ShardPartTest, APartMayCarryTheCommitAndBeRepeated) {
  spec_.trainer_count = 1;
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.seal_part_count = 1;
  part.commit = Commit({1});
  EXPECT_FALSE(shard_->Push(part)->duplicate);
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_TRUE(shard_->Push(part)->duplicate);
  EXPECT_EQ(AppliedEvent(), 1);
  part.commit->scalars.eps = 1;
  EXPECT_THAT(shard_->Push(part), Fails(kExists, "COMMIT_DIFFERS"));
}

TEST_F(ShardPartTest, ACommitThatIsRefusedLeavesNeitherPartNorSeal) {
  spec_.trainer_count = 1;
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.seal_part_count = 1;
  part.commit = Commit({7});
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "SESSIONS_DIFFER"));
  EXPECT_TRUE(shard_->GetEventState()->open_events.empty());
  part.commit = Commit({1});
  part.commit->scalars.beta2 = 1;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_SCALAR"));
  EXPECT_TRUE(shard_->GetEventState()->open_events.empty());
  part.commit->scalars.beta2 = 0;
  EXPECT_THAT(shard_->Push(part), IsOk());
  EXPECT_EQ(AppliedEvent(), 1);
}

TEST_F(ShardPartTest, ACancelledFinishHasNoEffect) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  auto call = BlockingShard::NewCall();
  call->cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(
      shard_->Finish(*std::move(landing), part, call).status()));
  EXPECT_EQ(StagedRows(1, 0), 0);
}

}  // namespace
}  // namespace rowhouse::testing
