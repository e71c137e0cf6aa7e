// Imports, resets, trainer counts, reservations.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kRange = absl::StatusCode::kOutOfRange;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ShardAdminTest : public ShardTest {};

TEST_F(ShardAdminTest, ImportWritesConsecutiveRows) {
  spec_.placement = wire::Placement::Even(20, 2);
  spec_.shard_index = 1;
  StartWithSessions();
  EXPECT_EQ(*shard_->Import(18, 2, Floats({1, 2, 3, 4})), 2);
  EXPECT_THAT(Row(17), ElementsAre(0, 0));
  EXPECT_THAT(Row(18), ElementsAre(1, 2));
  EXPECT_THAT(Row(19), ElementsAre(3, 4));
}

TEST_F(ShardAdminTest, ImportChecksRangeAndSize) {
  spec_.placement = wire::Placement::Even(20, 2);
  StartWithSessions();
  const std::string row = Floats({1, 2});
  EXPECT_THAT(shard_->Import(9, 2, row + row),
              Fails(kRange, "ROW_OF_OTHER_SHARD"));
  EXPECT_THAT(shard_->Import(10, 1, row), Fails(kRange, "ROW_OF_OTHER_SHARD"));
  EXPECT_THAT(shard_->Import(20, 1, row), Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(shard_->Import(-1, 1, row), Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(shard_->Import(0, 2, row), Fails(kInvalid, "BAD_SHAPE"));
  EXPECT_THAT(shard_->Import(0, -1, ""), Fails(kInvalid, "BAD_COUNT"));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(shard_->Import(0, kMost, row), Fails(kInvalid, "BAD_COUNT"));
  EXPECT_THAT(shard_->Import(kMost, 1, row), Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_EQ(*shard_->Import(3, 0, ""), 0);
}

TEST_F(ShardAdminTest, ImportNamesTheFirstValueThatIsNotFinite) {
  StartWithSessions();
  const auto refused = shard_->Import(4, 2, Floats({1, 2, kInfinity, 4}));
  EXPECT_THAT(refused, Fails(kInvalid, "NOT_FINITE"));
  EXPECT_EQ(Detail(refused, "row_id"), "5");
  EXPECT_EQ(Detail(refused, "column"), "0");
  EXPECT_THAT(Row(4), ElementsAre(0, 0));
}

TEST_F(ShardAdminTest, ImportTakesAnyValueWhereTheTablePropagates) {
  spec_.policy = kernels::NonFinitePolicy::kPropagate;
  StartWithSessions();
  EXPECT_THAT(shard_->Import(4, 1, Floats({kInfinity, 2})), IsOk());
}

TEST_F(ShardAdminTest, ImportEndsWithTheFirstEvent) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Import(4, 1, Floats({1, 2})),
              Fails(kPrecondition, "EVENT_PAST"));
}

TEST_F(ShardAdminTest, ResetReturnsToTheBeginning) {
  spec_.initializer = {kernels::Initializer::Kind::kUniform, 5, 0.5F};
  StartWithSessions();
  const auto initial = shard_->Digest();
  ASSERT_THAT(shard_->SetTrainerCount(7, 9), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
  EXPECT_NE(shard_->Digest()->row_sum, initial->row_sum);
  const auto info = shard_->Reset();
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->event, 0);
  EXPECT_THAT(info->trainer_counts, SizeIs(1));
  const auto state = shard_->GetEventState();
  EXPECT_TRUE(state->open_events.empty());
  EXPECT_TRUE(state->applied_events.empty());
  EXPECT_EQ(shard_->Digest()->row_sum, initial->row_sum);
  EXPECT_EQ(shard_->Digest()->history_sum, initial->history_sum);
}

TEST_F(ShardAdminTest, ResetClosesSessionsButKeepsTheirNumbers) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(shard_->Land(**landing, part), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Push(part), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->KeepAlive(kRank0), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->OpenSession(kRank0), Fails(kAborted, "FENCED"));
  EXPECT_EQ(shard_->GetEventState()->sessions[0].trainer.session, 1);
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_FALSE(shard_->Push(OneRow({0, 2}, 1, 0, 3))->duplicate);
}

TEST_F(ShardAdminTest, ATrainerCountChangesFromItsEventOn) {
  StartWithSessions();
  EXPECT_THAT(shard_->SetTrainerCount(1, 2),
              Fails(kPrecondition, "EVENT_PAST"));
  const auto info = shard_->SetTrainerCount(1, 3);
  ASSERT_THAT(info, IsOk());
  ASSERT_THAT(info->trainer_counts, SizeIs(2));
  EXPECT_EQ(info->trainer_counts[1].from_event, 3);
  EXPECT_EQ(info->trainer_counts[1].trainer_count, 1);
  ApplyEmptyEvent(1);
  ApplyEmptyEvent(2);
  ASSERT_THAT(shard_->Seal(kRank0, 3, 0), IsOk());
  EXPECT_THAT(shard_->Commit(kRank0, 3, Commit()),
              Fails(kInvalid, "BAD_COMMIT"));
  EXPECT_THAT(shard_->Commit(kRank0, 3, Commit({1})), IsOk());
  EXPECT_EQ(AppliedEvent(), 3);
}

TEST(ReservedBytesTest, CountsRowsStateContributionsHandlesPullsAndImports) {
  server::ShardSpec spec{.table = "tables/t",
                         .placement = wire::Placement::Even(101, 2),
                         .shard_index = 1,
                         .dim = 3,
                         .row_dtype = kernels::DType::kBf16,
                         .gradient_dtype = kernels::DType::kFp32,
                         .initializer = {},
                         .trainer_count = 2,
                         .max_contribution_row_count = 10,
                         .max_pull_bytes = 1000};
  server::ShardLimits limits;
  limits.max_anonymous_pull_count = 3;
  // 51 * (6 + 8) + 20 * (12 + 8) * 2 + 20 * 16 + (2 * 2 + 3 + 2) * 1000
  EXPECT_EQ(server::Shard::ReservedBytes(spec, limits), 10834);
}

TEST(ScratchNeedsTest, AreThoseOfAnEventOfAllTrainers) {
  const server::ShardSpec spec{.table = "tables/t",
                               .placement = wire::Placement::Even(101, 2),
                               .dim = 3,
                               .row_dtype = kernels::DType::kBf16,
                               .initializer = {},
                               .trainer_count = 2,
                               .max_contribution_row_count = 10,
                               .max_pull_bytes = 1000};
  const kernels::ScratchNeeds needs = server::Shard::ScratchNeeds(spec, {});
  EXPECT_EQ(needs.dim, 3);
  EXPECT_EQ(needs.entry_count, 20);
  EXPECT_EQ(needs.slot_count, 166);
  EXPECT_EQ(needs.host_bytes, 1 << 20);
  EXPECT_FALSE(needs.head.has_value());
}

TEST(ScratchNeedsTest, OfADenseTableAreThoseOfAPartAndAHeadCall) {
  const server::ShardSpec spec{
      .table = "tables/t",
      .placement = wire::Placement::Even(101, 2),
      .shard_index = 1,
      .dim = 3,
      .row_dtype = kernels::DType::kBf16,
      .initializer = {},
      .trainer_count = 2,
      .max_contribution_row_count = 10,
      .max_pull_bytes = 1000,
      .dense = server::DenseSpec{.has_bias = true, .max_head_token_count = 7}};
  const kernels::ScratchNeeds needs = server::Shard::ScratchNeeds(spec, {});
  EXPECT_EQ(needs.entry_count, 10);
  EXPECT_EQ(needs.token_count, 7);
  ASSERT_TRUE(needs.head.has_value());
  EXPECT_EQ(needs.head->row_count, 51);
  EXPECT_EQ(needs.head->dim, 3);
  EXPECT_NE(needs.head->bias, nullptr);
}

TEST(ReservedBytesTest, StaysAtTheLargestNumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  server::ShardSpec spec{.table = "tables/t",
                         .placement = wire::Placement::Even(1LL << 40, 1),
                         .dim = 1 << 18,
                         .row_dtype = kernels::DType::kFp32,
                         .initializer = {},
                         .trainer_count = 4096,
                         .max_contribution_row_count = kMost};
  EXPECT_EQ(server::Shard::ReservedBytes(spec, {}), kMost);
}

}  // namespace
}  // namespace rowhouse::testing
