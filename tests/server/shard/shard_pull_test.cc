// A pull shows one event throughout.

#include <cstdint>
#include <memory>
#include <string>
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
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kRange = absl::StatusCode::kOutOfRange;

class ShardPullTest : public ShardTest {
 protected:
  // Row i is (i, -i).
  void ImportRows() {
    std::string rows;
    for (int i = 0; i < 10; ++i) {
      const auto value = static_cast<float>(i);
      rows += Floats({value, -value});
    }
    ASSERT_THAT(shard_->Import(0, 10, rows), IsOk());
  }

  static server::PullRequest Of(server::TrainerSession trainer,
                                bool return_handle = false) {
    server::PullRequest request;
    request.trainer = trainer;
    request.return_handle = return_handle;
    return request;
  }

  // Changes row 3 and applies `event`.
  void ApplyEventOnRow3(int64_t event) {
    ASSERT_THAT(shard_->Push(OneRow(kRank0, event, 0, 3)), IsOk());
    ASSERT_THAT(shard_->Seal(kRank0, event, 1), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, 0), IsOk());
    ASSERT_THAT(shard_->Commit(kRank0, event, Commit()), IsOk());
  }
};

TEST_F(ShardPullTest, RowsComeInRequestOrderWithRepeats) {
  StartWithSessions();
  ImportRows();
  const auto pulled = shard_->Pull({7, 0, 7, 9});
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->event, 0);
  EXPECT_EQ(pulled->handle, 0);
  EXPECT_THAT(ToFloats(pulled->rows), ElementsAre(7, -7, 0, 0, 7, -7, 9, -9));
}

TEST_F(ShardPullTest, AnyCutOfReadsGivesTheSameRows) {
  StartWithSessions();
  ImportRows();
  EXPECT_EQ(shard_->Pull({5, 4, 3, 2, 1}, {}, 2)->rows,
            shard_->Pull({5, 4, 3, 2, 1}, {}, 5)->rows);
}

TEST_F(ShardPullTest, APullOfNoRowsIsValid) {
  StartWithSessions();
  const auto pulled = shard_->Pull({});
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->rows, "");
}

TEST_F(ShardPullTest, RowIdsAreOfThisShard) {
  spec_.placement = wire::Placement::Even(20, 2);
  Start();
  EXPECT_THAT(owned_->ResolveRowIds(std::vector<int64_t>{0, 9}), IsOk());
  const auto other = owned_->ResolveRowIds(std::vector<int64_t>{0, 10, 20});
  EXPECT_THAT(other, Fails(kRange, "ROW_OF_OTHER_SHARD"));
  EXPECT_EQ(Detail(other, "position"), "1");
  EXPECT_THAT(owned_->ResolveRowIds(std::vector<int64_t>{20}),
              Fails(kRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(owned_->ResolveRowIds(std::vector<int64_t>{-1}),
              Fails(kRange, "ROW_OUT_OF_TABLE"));
}

TEST_F(ShardPullTest, AnOpenPullShowsItsEventWhileALaterOneIsApplied) {
  StartWithSessions();
  ImportRows();
  auto pull = shard_->OpenPull({2, 3, 3});
  ASSERT_THAT(pull, IsOk());
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 1)), ElementsAre(2, -2));
  ApplyEventOnRow3(1);
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 1)), ElementsAre(3, -3));
  ApplyEventOnRow3(2);
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 1)), ElementsAre(3, -3));
  EXPECT_EQ((*pull)->event(), 0);
  EXPECT_NE(Row(3)[0], 3);
}

TEST_F(ShardPullTest, AnOpenPullOutlivesAnImportAndAReset) {
  StartWithSessions();
  ImportRows();
  auto pull = shard_->OpenPull({3, 3, 3});
  ASSERT_THAT(shard_->Import(3, 1, Floats({8, 8})), IsOk());
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 1)), ElementsAre(3, -3));
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 2)), ElementsAre(3, -3, 3, -3));
}

TEST_F(ShardPullTest, ASessionHasTwoOpenPulls) {
  StartWithSessions();
  auto first = shard_->OpenPull({1}, Of(kRank0));
  const auto second = shard_->OpenPull({1}, Of(kRank0));
  ASSERT_THAT(second, IsOk());
  const auto third = shard_->OpenPull({1}, Of(kRank0));
  EXPECT_THAT(third, Fails(kExhausted, "PULLS_OPEN"));
  EXPECT_EQ(Detail(third, "value"), "2");
  EXPECT_TRUE(wire::DetailsOf(third.status())->retry_delay.has_value());
  EXPECT_THAT(shard_->OpenPull({1}, Of(kRank1)), IsOk());
  first->reset();
  EXPECT_THAT(shard_->OpenPull({1}, Of(kRank0)), IsOk());
}

TEST_F(ShardPullTest, AWaitingPullCounts) {
  StartWithSessions();
  server::PullRequest request = Of(kRank0);
  request.min_event = 1;
  auto waiting = shard_->StartPull({1}, request);
  const auto open = shard_->OpenPull({1}, Of(kRank0));
  ASSERT_THAT(open, IsOk());
  EXPECT_THAT(shard_->OpenPull({1}, Of(kRank0)),
              Fails(kExhausted, "PULLS_OPEN"));
  ApplyEmptyEvent(1);
  EXPECT_THAT(waiting.Wait(), IsOk());
}

TEST_F(ShardPullTest, PullsOutsideSessionsAreBoundedTogether) {
  limits_.max_anonymous_pull_count = 1;
  StartWithSessions();
  auto first = shard_->OpenPull({1});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(shard_->OpenPull({1}), Fails(kExhausted, "PULLS_OPEN"));
  EXPECT_THAT(shard_->OpenPull({1}, Of(kRank0)), IsOk());
  first->reset();
  EXPECT_THAT(shard_->OpenPull({1}), IsOk());
}

TEST_F(ShardPullTest, APullThatFailsGivesItsPlaceBack) {
  limits_.max_anonymous_pull_count = 1;
  StartWithSessions();
  for (int i = 0; i < 3; ++i) {
    server::PullRequest request;
    request.min_event = 1;
    auto call = BlockingShard::NewCall();
    call->cancelled = true;
    EXPECT_TRUE(absl::IsCancelled(
        shard_->StartPull({1}, request, call).Wait().status()));
  }
  EXPECT_THAT(shard_->OpenPull({1}), IsOk());
}

TEST_F(ShardPullTest, APullIsBoundedByBytesAndByRows) {
  spec_.max_pull_bytes = 3 * 8 + 7;
  StartWithSessions();
  EXPECT_THAT(shard_->Pull({1, 1, 1}), IsOk());
  const auto large = shard_->Pull({1, 1, 1, 1});
  EXPECT_THAT(large, Fails(kInvalid, "PULL_TOO_LARGE"));
  EXPECT_EQ(Detail(large, "limit"), "max_pull_bytes");
  EXPECT_EQ(Detail(large, "value"), "3");
}

TEST_F(ShardPullTest, APullHasAtMostFourHundredThousandRows) {
  StartWithSessions();
  EXPECT_THAT(shard_->Pull(std::vector<int64_t>(400'000, 1)), IsOk());
  const auto large = shard_->Pull(std::vector<int64_t>(400'001, 1));
  EXPECT_THAT(large, Fails(kInvalid, "PULL_TOO_LARGE"));
  EXPECT_EQ(Detail(large, "value"), "400000");
}

TEST_F(ShardPullTest, AHandleGivesTheSameRowsAgain) {
  StartWithSessions();
  ImportRows();
  const auto first = shard_->Pull({7, 2}, Of(kRank0, true));
  ASSERT_GT(first->handle, 0);
  server::PullRequest again = Of(kRank0);
  again.handle = first->handle;
  const auto second = shard_->Pull({}, again);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(ToFloats(second->rows), ElementsAre(7, -7, 2, -2));
}

TEST_F(ShardPullTest, AHandlePullMayWaitPastItsHandle) {
  StartWithSessions();
  ImportRows();
  server::PullRequest request = Of(kRank0);
  request.handle = shard_->Pull({7, 3}, Of(kRank0, true))->handle;
  request.min_event = 1;
  auto waiting = shard_->StartPull({}, request);
  ApplyEmptyEvent(1);
  auto pull = waiting.Wait();
  ASSERT_THAT(pull, IsOk());
  EXPECT_THAT(ToFloats(*shard_->Read(**pull, 2)), ElementsAre(7, -7, 3, -3));
}

TEST_F(ShardPullTest, AHandleIsGoneForOtherRanksAndAfterTheNextEvent) {
  StartWithSessions();
  server::PullRequest request = Of(kRank1);
  request.handle = shard_->Pull({7}, Of(kRank0, true))->handle;
  EXPECT_THAT(shard_->Pull({}, request), Fails(kPrecondition, "HANDLE_GONE"));
  request.trainer = kRank0;
  EXPECT_THAT(shard_->Pull({}, request), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Pull({}, request), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST_F(ShardPullTest, HandlesNeedATrainerAndExcludeRowIds) {
  StartWithSessions();
  server::PullRequest anonymous;
  anonymous.return_handle = true;
  EXPECT_THAT(shard_->Pull({1}, anonymous), Fails(kInvalid, "MALFORMED"));
  server::PullRequest both = Of(kRank0);
  both.handle = 1;
  EXPECT_THAT(shard_->Pull({1}, both), Fails(kInvalid, "MALFORMED"));
}

TEST_F(ShardPullTest, HandlesAreBoundedByRows) {
  spec_.max_contribution_row_count = 1;
  StartWithSessions();
  server::PullRequest first = Of(kRank0);
  first.handle = shard_->Pull({1, 2}, Of(kRank0, true))->handle;
  EXPECT_EQ(shard_->Pull({1, 2, 3}, Of(kRank0, true))->handle, 0);
  EXPECT_THAT(shard_->Pull({}, first), IsOk());
  ASSERT_GT(shard_->Pull({3}, Of(kRank0, true))->handle, 0);
  EXPECT_THAT(shard_->Pull({}, first), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST_F(ShardPullTest, TrainingPullsChangeNoBitThatAReaderSees) {
  StartWithSessions();
  for (int64_t event = 1; event <= 3; ++event) ApplyEventOnRow3(event);
  const auto before = shard_->Digest();
  for (const std::vector<int64_t>& row_ids :
       {std::vector<int64_t>{1, 3, 5}, {3, 3}, {5, 3}, {}}) {
    server::PullRequest request = Of(kRank0);
    request.training = true;
    ASSERT_THAT(shard_->Pull(row_ids, request, 1), IsOk());
  }
  EXPECT_EQ(shard_->Digest()->row_sum, before->row_sum);
  ApplyEventOnRow3(4);
}

TEST_F(ShardPullTest, AFencedSessionsPullEnds) {
  StartWithSessions();
  auto pull = shard_->OpenPull({1, 2}, Of(kRank0));
  ASSERT_THAT(shard_->Read(**pull, 1), IsOk());
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(shard_->Read(**pull, 1), Fails(kAborted, "FENCED"));
}

}  // namespace
}  // namespace rowhouse::testing
