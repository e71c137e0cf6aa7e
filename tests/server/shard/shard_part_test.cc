// Each part counts exactly once.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kRange = absl::StatusCode::kOutOfRange;

class ShardPartTest : public ShardTest {
 protected:
  // Pushes one part of each rank, seals, and applies `event`.
  void ApplyEventWithParts(int64_t event) {
    ASSERT_THAT(shard_->Push(OneRow(kRank0, event, 0, 3)), IsOk());
    ASSERT_THAT(shard_->Push(OneRow(kRank1, event, 0, 4)), IsOk());
    ASSERT_THAT(shard_->Seal(kRank0, event, 1), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, 1), IsOk());
    ASSERT_THAT(shard_->Commit(kRank0, event, Commit()), IsOk());
  }

  int64_t StagedRows(int64_t event, int32_t rank) {
    const auto state = shard_->GetEventState();
    for (const auto& open : state->open_events) {
      if (open.event != event) continue;
      for (const auto& contribution : open.contributions) {
        if (contribution.trainer_rank == rank) return contribution.row_count;
      }
    }
    return 0;
  }

  // Two rows by handle: a pull of rows 6 and 2, then their gradients.
  PartToPush ByHandle(int64_t event) {
    server::PullRequest request;
    request.trainer = kRank0;
    request.return_handle = true;
    const auto pulled = shard_->Pull({6, 2}, request);
    PartToPush part;
    part.trainer = kRank0;
    part.event = event;
    part.handles = {pulled->handle};
    part.rows = Floats({1, 0, 0, 1});
    return part;
  }
};

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

TEST_F(ShardPartTest, NumbersBelowTheirRangeAreRefused) {
  StartWithSessions();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 0, 0, 3)),
              Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, -1, 3)),
              Fails(kInvalid, "BAD_PART"));
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_count = -1;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
}

TEST_F(ShardPartTest, RowsAreCheckedAgainstTheHeader) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_count = 2;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
  part.row_count = 0;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
  EXPECT_EQ(StagedRows(1, 0), 0);
}

TEST_F(ShardPartTest, MessagesMustFollowOneAnother) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(landing, IsOk());
  const absl::Status skipped = (*landing)->Append(1, part.row_ids, part.rows);
  EXPECT_THAT(skipped, Fails(kInvalid, "BAD_OFFSET"));
  // A landing that failed stays so.
  EXPECT_THAT((*landing)->Append(0, part.row_ids, part.rows),
              Fails(kInvalid, "BAD_OFFSET"));
  EXPECT_THAT(shard_->Finish(*std::move(landing), part),
              Fails(kInvalid, "BAD_OFFSET"));
}

TEST_F(ShardPartTest, MessagesHoldWholeRowsAndAnIdForEach) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  EXPECT_THAT((*landing)->Append(0, part.row_ids, "seven b"),
              Fails(kInvalid, "BAD_SHAPE"));
  landing = shard_->Begin(part);
  EXPECT_THAT((*landing)->Append(0, {}, part.rows),
              Fails(kInvalid, "BAD_SHAPE"));
}

TEST_F(ShardPartTest, TheFirstBadRowIdIsNamed) {
  spec_.placement = wire::Placement::Even(20, 2);
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.rows = Floats({1, 0, 1, 0, 1, 0});
  part.rows_per_message = 1;
  part.row_ids = {9, 10, 20};
  const auto other = shard_->Push(part);
  EXPECT_THAT(other, Fails(kRange, "ROW_OF_OTHER_SHARD"));
  EXPECT_EQ(Detail(other, "position"), "1");
  EXPECT_EQ(Detail(other, "row_id"), "10");
  EXPECT_EQ(Detail(other, "shard_index"), "1");
  part.row_ids = {0, 9, -1};
  const auto out = shard_->Push(part);
  EXPECT_THAT(out, Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_EQ(Detail(out, "position"), "2");
  EXPECT_EQ(StagedRows(1, 0), 0);
}

TEST_F(ShardPartTest, AGradientThatIsNotFiniteIsRefusedAsAWhole) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {1, 2, 3};
  part.rows = Floats({1, 0, 1, 0, 1, std::numeric_limits<float>::infinity()});
  part.rows_per_message = 2;
  const auto refused = shard_->Push(part);
  EXPECT_THAT(refused, Fails(kInvalid, "NOT_FINITE"));
  EXPECT_EQ(Detail(refused, "position"), "2");
  EXPECT_EQ(Detail(refused, "column"), "1");
  EXPECT_EQ(StagedRows(1, 0), 0);
}

TEST_F(ShardPartTest, OtherPoliciesLetItLand) {
  spec_.policy = kernels::NonFinitePolicy::kSkipRow;
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.rows = Floats({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THAT(shard_->Push(part), IsOk());
  EXPECT_TRUE(shard_->Push(part)->duplicate);
}

TEST_F(ShardPartTest, APartOfNoRowsIsAPart) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {};
  part.rows = "";
  part.seal_part_count = 1;
  const auto receipt = shard_->Push(part);
  ASSERT_THAT(receipt, IsOk());
  EXPECT_EQ(receipt->row_count, 0);
  EXPECT_TRUE(shard_->Push(part)->duplicate);
}

TEST_F(ShardPartTest, ARanksRowsOfAnEventAreBounded) {
  spec_.max_contribution_row_count = 2;
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  // One that is landing counts.
  const auto landing = shard_->Begin(OneRow(kRank0, 1, 1, 3));
  ASSERT_THAT(landing, IsOk());
  const auto full = shard_->Push(OneRow(kRank0, 1, 2, 3));
  EXPECT_THAT(full, Fails(kExhausted, "CONTRIBUTION_FULL"));
  EXPECT_EQ(Detail(full, "limit"), "max_contribution_row_count");
  EXPECT_EQ(Detail(full, "value"), "2");
  EXPECT_EQ(wire::DetailsOf(full.status())->retry_delay, std::nullopt);
  // Other ranks and events have room of their own.
  EXPECT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 3)), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
}

TEST_F(ShardPartTest, ALandingThatIsGivenUpLeavesNoTrace) {
  spec_.max_contribution_row_count = 1;
  StartWithSessions();
  {
    const auto landing = shard_->Begin(OneRow(kRank0, 1, 0, 3));
    ASSERT_THAT(landing, IsOk());
  }
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 4)), IsOk());
}

TEST_F(ShardPartTest, PartNumbersAreBounded) {
  StartWithSessions();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 7, 3)), IsOk());
  const auto full = shard_->Push(OneRow(kRank0, 1, 8, 3));
  EXPECT_THAT(full, Fails(kExhausted, "PARTS_FULL"));
  EXPECT_EQ(Detail(full, "value"), "8");
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

TEST_F(ShardPartTest, HandlesNameTheRowsOfAPart) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.rows_per_message = 1;
  part.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(part), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_THAT(Row(6), ElementsAre(-1.41421354F, 0));
  EXPECT_THAT(Row(2), ElementsAre(0, -1.41421354F));
}

TEST_F(ShardPartTest, RowsOfSeveralHandlesFollowOneAnother) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  const PartToPush more = ByHandle(1);
  part.handles.push_back(more.handles[0]);
  part.rows += more.rows;
  ASSERT_THAT(shard_->Push(part), IsOk());
  PartToPush by_ids = part;
  by_ids.handles = {};
  by_ids.row_ids = {6, 2, 6, 2};
  EXPECT_TRUE(shard_->Push(by_ids)->duplicate);
}

TEST_F(ShardPartTest, HandlesMustNameAsManyRowsAsTheHeader) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.rows = Floats({1, 0});
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
}

TEST_F(ShardPartTest, IdsBesideHandlesAreRefused) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.row_ids = {6, 2};
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_SHAPE"));
}

TEST_F(ShardPartTest, AnUnknownHandleIsGone) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.handles[0] ^= 1;
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST_F(ShardPartTest, AHandleExpiresWithTheNextEvent) {
  StartWithSessions();
  const PartToPush part = ByHandle(2);
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "HANDLE_GONE"));
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

TEST_F(ShardPartTest, ARankOutsideTheEventsTrainersIsRefused) {
  StartWithSessions();
  ASSERT_THAT(shard_->SetTrainerCount(1, 3), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Push(OneRow(kRank1, 3, 0, 3)),
              Fails(kInvalid, "BAD_RANK"));
  EXPECT_THAT(shard_->Push(OneRow(kRank1, 2, 0, 3)), IsOk());
}

TEST_F(ShardPartTest, AnEmptyShardTakesEmptyParts) {
  spec_.placement = wire::Placement::Even(0, 1);
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_ids = {};
  part.rows = "";
  EXPECT_THAT(shard_->Push(part), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 0)),
              Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  EXPECT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_THAT(shard_->Pull({}), IsOk());
}

}  // namespace
}  // namespace rowhouse::testing
