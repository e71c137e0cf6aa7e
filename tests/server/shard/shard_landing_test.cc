// What may land as a part, and what is refused as a whole.

#include <limits>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_part_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kRange = absl::StatusCode::kOutOfRange;

class ShardLandingTest : public PartTest {};

TEST_F(ShardLandingTest, NumbersBelowTheirRangeAreRefused) {
  StartWithSessions();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 0, 0, 3)),
              Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, -1, 3)),
              Fails(kInvalid, "BAD_PART"));
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_count = -1;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
}

TEST_F(ShardLandingTest, RowsAreCheckedAgainstTheHeader) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.row_count = 2;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
  part.row_count = 0;
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
  EXPECT_EQ(StagedRows(1, 0), 0);
}

TEST_F(ShardLandingTest, MessagesMustFollowOneAnother) {
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

TEST_F(ShardLandingTest, MessagesHoldWholeRowsAndAnIdForEach) {
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  EXPECT_THAT((*landing)->Append(0, part.row_ids, std::string_view("seven b")),
              Fails(kInvalid, "BAD_SHAPE"));
  landing = shard_->Begin(part);
  EXPECT_THAT((*landing)->Append(0, {}, part.rows),
              Fails(kInvalid, "BAD_SHAPE"));
}

TEST_F(ShardLandingTest, TheFirstBadRowIdIsNamed) {
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

TEST_F(ShardLandingTest, AGradientThatIsNotFiniteIsRefusedAsAWhole) {
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

TEST_F(ShardLandingTest, OtherPoliciesLetItLand) {
  spec_.policy = kernels::NonFinitePolicy::kSkipRow;
  StartWithSessions();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.rows = Floats({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THAT(shard_->Push(part), IsOk());
  EXPECT_TRUE(shard_->Push(part)->duplicate);
}

TEST_F(ShardLandingTest, APartOfNoRowsIsAPart) {
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

TEST_F(ShardLandingTest, ARanksRowsOfAnEventAreBounded) {
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

TEST_F(ShardLandingTest, ALandingThatIsGivenUpLeavesNoTrace) {
  spec_.max_contribution_row_count = 1;
  StartWithSessions();
  {
    const auto landing = shard_->Begin(OneRow(kRank0, 1, 0, 3));
    ASSERT_THAT(landing, IsOk());
  }
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 4)), IsOk());
}

TEST_F(ShardLandingTest, PartNumbersAreBounded) {
  StartWithSessions();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 7, 3)), IsOk());
  const auto full = shard_->Push(OneRow(kRank0, 1, 8, 3));
  EXPECT_THAT(full, Fails(kExhausted, "PARTS_FULL"));
  EXPECT_EQ(Detail(full, "value"), "8");
}

TEST_F(ShardLandingTest, HandlesNameTheRowsOfAPart) {
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

TEST_F(ShardLandingTest, RowsOfSeveralHandlesFollowOneAnother) {
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

TEST_F(ShardLandingTest, HandlesMustNameAsManyRowsAsTheHeader) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.rows = Floats({1, 0});
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_COUNT"));
}

TEST_F(ShardLandingTest, IdsBesideHandlesAreRefused) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.row_ids = {6, 2};
  EXPECT_THAT(shard_->Push(part), Fails(kInvalid, "BAD_SHAPE"));
}

TEST_F(ShardLandingTest, AnUnknownHandleIsGone) {
  StartWithSessions();
  PartToPush part = ByHandle(1);
  part.handles[0] ^= 1;
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST_F(ShardLandingTest, AHandleExpiresWithTheNextEvent) {
  StartWithSessions();
  const PartToPush part = ByHandle(2);
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Push(part), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST_F(ShardLandingTest, ARankOutsideTheEventsTrainersIsRefused) {
  StartWithSessions();
  ASSERT_THAT(shard_->SetTrainerCount(1, 3), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Push(OneRow(kRank1, 3, 0, 3)),
              Fails(kInvalid, "BAD_RANK"));
  EXPECT_THAT(shard_->Push(OneRow(kRank1, 2, 0, 3)), IsOk());
}

TEST_F(ShardLandingTest, AnEmptyShardTakesEmptyParts) {
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
