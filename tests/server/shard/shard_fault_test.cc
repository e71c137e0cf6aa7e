// What a shard does when its backend gives out; and what it asks of it.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/failing_backend.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kInternal = absl::StatusCode::kInternal;

class ShardFaultTest : public ShardTest {
 protected:
  ShardFaultTest() {
    auto failing = std::make_unique<FailingBackend>(std::move(backend_));
    failing_ = failing.get();
    backend_ = std::move(failing);
  }

  int BroughtCurrent(const std::vector<int64_t>& row_ids, bool training) {
    const int before = failing_->bring_current_count;
    server::PullRequest request;
    request.training = training;
    EXPECT_THAT(shard_->Pull(row_ids, request, 1), IsOk());
    EXPECT_EQ(AppliedEvent(), 0);  // The lane has come past it.
    return failing_->bring_current_count - before;
  }

  FailingBackend* failing_;
};

TEST_F(ShardFaultTest, AFaultInAnEventMakesTheShardUnusable) {
  StartWithSessions();
  server::PullRequest request;
  request.min_event = 1;
  auto waiting = shard_->StartPull({1}, request);
  auto pull = shard_->OpenPull({1});
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  failing_->fail_events = true;
  // The commit was recorded.
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_THAT(waiting.Wait(), StatusIs(kInternal, "fell off the bus"));
  failing_->fail_events = false;
  EXPECT_THAT(shard_->GetInfo(), StatusIs(kInternal, "fell off the bus"));
  EXPECT_THAT(shard_->Read(**pull, 1), StatusIs(kInternal, "fell off the bus"));
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)),
              StatusIs(kInternal, "fell off the bus"));
  EXPECT_THAT(shard_->Reset(), StatusIs(kInternal, "fell off the bus"));
}

TEST_F(ShardFaultTest, APartThatFindsNoMemoryLeavesNoTrace) {
  spec_.max_contribution_row_count = 1;
  StartWithSessions();
  failing_->fail_allocations = true;
  EXPECT_TRUE(absl::IsResourceExhausted(
      shard_->Push(OneRow(kRank0, 1, 0, 3)).status()));
  failing_->fail_allocations = false;
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 1, 3)), IsOk());
}

TEST_F(ShardFaultTest, APullThatCannotBeSavedFailsAloneAndTheEventIsApplied) {
  StartWithSessions();
  auto pull = shard_->OpenPull({1, 2});
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  failing_->fail_allocations = true;
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_EQ(AppliedEvent(), 1);
  failing_->fail_allocations = false;
  EXPECT_TRUE(absl::IsResourceExhausted(shard_->Read(**pull, 1).status()));
  EXPECT_THAT(Row(1), ElementsAre(0, 0));
}

TEST_F(ShardFaultTest, CreationFailsWithoutMemory) {
  failing_->fail_allocations = true;
  EXPECT_TRUE(absl::IsResourceExhausted(
      server::Shard::Create(spec_, limits_, *backend_, timers_).status()));
}

TEST_F(ShardFaultTest, OnlyTrainingPullsOfAscendingRowsAreBroughtCurrent) {
  StartWithSessions();
  EXPECT_EQ(BroughtCurrent({1, 3, 5}, true), 1);
  EXPECT_EQ(BroughtCurrent({1, 3, 5}, false), 0);
  EXPECT_EQ(BroughtCurrent({1, 3, 3}, true), 0);
  EXPECT_EQ(BroughtCurrent({3, 1}, true), 0);
}

TEST_F(ShardFaultTest, APullThatIsNotReadToItsEndBringsNothingCurrent) {
  StartWithSessions();
  server::PullRequest request;
  request.training = true;
  {
    auto pull = shard_->OpenPull({1, 3, 5}, request);
    ASSERT_THAT(shard_->Read(**pull, 2), IsOk());
  }
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_EQ(failing_->bring_current_count, 0);
}

}  // namespace
}  // namespace rowhouse::testing
