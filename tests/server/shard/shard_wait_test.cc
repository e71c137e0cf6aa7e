// Calls that wait for events, and how waits end.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kDeadline = absl::StatusCode::kDeadlineExceeded;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ShardWaitTest : public ShardTest {
 protected:
  static server::PullRequest Min(int64_t event) {
    server::PullRequest request;
    request.min_event = event;
    return request;
  }
  static server::PullRequest Exact(int64_t event) {
    server::PullRequest request;
    request.exact_event = event;
    return request;
  }
};

TEST_F(ShardWaitTest, MinEventIsServedAtOrPastTheEvent) {
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_FALSE(waiting.IsDone());
  ApplyEmptyEvent(1);
  EXPECT_EQ((*waiting.Wait())->event(), 1);
  ApplyEmptyEvent(2);
  EXPECT_EQ(shard_->Pull({1}, Min(1))->event, 2);
  EXPECT_EQ(shard_->Pull({1}, Min(0))->event, 2);
}

TEST_F(ShardWaitTest, ExactEventIsServedAtThatEventOnly) {
  StartWithSessions();
  EXPECT_EQ(shard_->Pull({1}, Exact(0))->event, 0);
  auto waiting = shard_->StartPull({1}, Exact(1));
  ApplyEmptyEvent(1);
  EXPECT_EQ((*waiting.Wait())->event(), 1);
  const auto past = shard_->Pull({1}, Exact(0));
  EXPECT_THAT(past, Fails(kPrecondition, "EVENT_PAST"));
  EXPECT_EQ(Detail(past, "current_event"), "1");
}

TEST_F(ShardWaitTest, TheTwoExcludeEachOtherAndAreNotNegative) {
  StartWithSessions();
  server::PullRequest both = Min(0);
  both.exact_event = 0;
  EXPECT_THAT(shard_->Pull({1}, both), Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->Pull({1}, Min(-1)), Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->Pull({1}, Exact(-1)), Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->Digest(-1), Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->StartGetEventState(-1, std::nullopt).Wait(),
              Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(shard_->StartGetEventState(std::nullopt, -1).Wait(),
              Fails(kInvalid, "BAD_EVENT"));
}

TEST_F(ShardWaitTest, AWaitEndsAfterTheServersLimit) {
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  EXPECT_EQ(AppliedEvent(), 0);
  timers_.Advance(absl::Seconds(29));
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_FALSE(waiting.IsDone());
  timers_.Advance(absl::Seconds(1));
  const auto ended = waiting.Wait();
  EXPECT_THAT(ended, Fails(kDeadline, "EVENT_PENDING"));
  EXPECT_EQ(Detail(ended, "current_event"), "0");
}

TEST_F(ShardWaitTest, AWaitEndsAtTheCallsDeadline) {
  StartWithSessions();
  auto longer = shard_->StartPull({1}, Min(1));
  auto call = BlockingShard::NewCall();
  call->deadline = timers_.Now() + absl::Seconds(5);
  auto waiting = shard_->StartPull({1}, Min(1), call);
  EXPECT_EQ(AppliedEvent(), 0);
  timers_.Advance(absl::Seconds(5));
  EXPECT_THAT(waiting.Wait(), Fails(kDeadline, "EVENT_PENDING"));
  EXPECT_FALSE(longer.IsDone());
  timers_.Advance(absl::Seconds(25));
  EXPECT_THAT(longer.Wait(), Fails(kDeadline, "EVENT_PENDING"));
}

TEST_F(ShardWaitTest, ACancelledWaitEnds) {
  StartWithSessions();
  auto call = BlockingShard::NewCall();
  auto waiting = shard_->StartPull({1}, Min(1), call);
  auto other = shard_->StartPull({1}, Min(1));
  call->cancelled = true;
  owned_->NoteCancelled();
  EXPECT_TRUE(absl::IsCancelled(waiting.Wait().status()));
  EXPECT_FALSE(other.IsDone());
}

TEST_F(ShardWaitTest, WaitsAreBounded) {
  limits_.max_parked_read_count = 1;
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  const auto full = shard_->Pull({1}, Min(1));
  EXPECT_THAT(full, Fails(kExhausted, "PARKED_READS_FULL"));
  EXPECT_EQ(Detail(full, "value"), "1");
  EXPECT_TRUE(wire::DetailsOf(full.status())->retry_delay.has_value());
  // What need not wait is served, and the wait that ends makes room.
  EXPECT_THAT(shard_->Pull({1}, Min(0)), IsOk());
  ApplyEmptyEvent(1);
  EXPECT_THAT(waiting.Wait(), IsOk());
  auto next = shard_->StartPull({1}, Min(2));
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_FALSE(next.IsDone());
}

TEST_F(ShardWaitTest, AWaitOfAFencedSessionEnds) {
  StartWithSessions();
  server::PullRequest request = Min(1);
  request.trainer = kRank0;
  auto waiting = shard_->StartPull({1}, request);
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(waiting.Wait(), Fails(kAborted, "FENCED"));
}

TEST_F(ShardWaitTest, EventStateWaitsForTheSeals) {
  StartWithSessions();
  auto waiting = shard_->StartGetEventState(1, std::nullopt);
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_FALSE(waiting.IsDone());
  PartToPush last = OneRow(kRank1, 1, 0, 3);
  last.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(last), IsOk());
  const auto state = waiting.Wait();
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->open_events[0].all_sealed);
  EXPECT_EQ(state->event, 0);
}

TEST_F(ShardWaitTest, EventStateWaitsForTheEvent) {
  StartWithSessions();
  auto waiting = shard_->StartGetEventState(std::nullopt, 1);
  ApplyEmptyEvent(1);
  EXPECT_EQ(waiting.Wait()->event, 1);
  // An applied event counts as sealed.
  EXPECT_THAT(shard_->StartGetEventState(1, 1).Wait(), IsOk());
}

TEST_F(ShardWaitTest, EventStateGivesUpLikeARead) {
  StartWithSessions();
  auto waiting = shard_->StartGetEventState(1, std::nullopt);
  EXPECT_EQ(AppliedEvent(), 0);
  timers_.Advance(absl::Seconds(30));
  EXPECT_THAT(waiting.Wait(), Fails(kDeadline, "EVENT_PENDING"));
}

TEST_F(ShardWaitTest, ADigestWaitsForItsEvent) {
  StartWithSessions();
  PendingCall<server::ShardDigest> waiting;
  owned_->Digest(1, BlockingShard::NewCall(), waiting.Callback());
  ApplyEmptyEvent(1);
  EXPECT_EQ(waiting.Wait()->event, 1);
  ApplyEmptyEvent(2);
  EXPECT_THAT(shard_->Digest(1), Fails(kPrecondition, "EVENT_PAST"));
}

TEST_F(ShardWaitTest, ACallWhoseDeadlinePassedInTheLaneHasNoEffect) {
  StartWithSessions();
  auto call = BlockingShard::NewCall();
  call->deadline = timers_.Now();
  PendingCall<int64_t> sealed;
  owned_->Seal(kRank0, 1, 0, call, sealed.Callback());
  EXPECT_TRUE(absl::IsDeadlineExceeded(sealed.Wait().status()));
  EXPECT_TRUE(shard_->GetEventState()->open_events.empty());
}

TEST_F(ShardWaitTest, ACallThatWasCancelledInTheLaneHasNoEffect) {
  StartWithSessions();
  auto call = BlockingShard::NewCall();
  call->cancelled = true;
  PendingCall<int64_t> sealed;
  owned_->Seal(kRank0, 1, 0, call, sealed.Callback());
  EXPECT_TRUE(absl::IsCancelled(sealed.Wait().status()));
  EXPECT_TRUE(shard_->GetEventState()->open_events.empty());
}

TEST_F(ShardWaitTest, AFullLaneRefusesAtOnce) {
  limits_.lane_capacity = 1;
  StartWithSessions();
  // The lane stands in this callback while the test goes on.
  Pending<bool> entered;
  Pending<bool> released;
  owned_->GetInfo(BlockingShard::NewCall(),
                  [callback = entered.Callback(),
                   released](absl::StatusOr<server::ShardInfo>) mutable {
                    callback(true);
                    released.Wait();
                  });
  entered.Wait();
  PendingCall<int64_t> queued;
  owned_->KeepAlive(kRank0, BlockingShard::NewCall(), queued.Callback());
  EXPECT_THAT(shard_->KeepAlive(kRank0), Fails(kExhausted, "LANE_FULL"));
  released.Callback()(true);
  EXPECT_THAT(queued.Wait(), IsOk());
}

TEST_F(ShardWaitTest, CloseEndsWaitsAndRefusesLaterCalls) {
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  auto pull = shard_->OpenPull({1, 2});
  owned_->Close(absl::NotFoundError("the table was deleted"));
  ASSERT_TRUE(waiting.IsDone());
  EXPECT_TRUE(absl::IsNotFound(waiting.Wait().status()));
  EXPECT_TRUE(absl::IsNotFound(shard_->GetInfo().status()));
  EXPECT_TRUE(absl::IsNotFound(shard_->Read(**pull, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(shard_->Push(OneRow(kRank0, 1, 0, 3)).status()));
  // The first reason stays.
  owned_->Close(absl::UnavailableError("ending"));
  EXPECT_TRUE(absl::IsNotFound(shard_->GetInfo().status()));
}

TEST_F(ShardWaitTest, TheShardsEndEndsWaits) {
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  EXPECT_EQ(AppliedEvent(), 0);
  owned_.reset();
  EXPECT_TRUE(absl::IsUnavailable(waiting.Wait().status()));
  timers_.Advance(absl::Seconds(60));  // Timers that fire late do nothing.
}

TEST_F(ShardWaitTest, TheLoadTellsWhatWaits) {
  limits_.lane_capacity = 7;
  limits_.max_parked_read_count = 5;
  StartWithSessions();
  auto waiting = shard_->StartPull({1}, Min(1));
  auto state = shard_->StartGetEventState(std::nullopt, 1);
  EXPECT_EQ(shard_->GetEventState()->load,
            (server::ShardLoad{.max_lane_call_count = 7,
                               .parked_call_count = 2,
                               .max_parked_call_count = 5,
                               .open_pull_count = 1}));
  ApplyEmptyEvent(1);
  // The pull is there to be read; it holds its place until it goes.
  const auto pull = *waiting.Wait();
  EXPECT_THAT(state.Wait(), IsOk());
  const server::ShardLoad after = shard_->GetEventState()->load;
  EXPECT_EQ(after.parked_call_count, 0);
  EXPECT_EQ(after.open_pull_count, 1);
}

TEST_F(ShardWaitTest, TheLoadTellsWhatIsStagedUntilItIsApplied) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  // A row of two fp32 and its slot, at least.
  const int64_t staged = shard_->GetEventState()->load.staged_bytes;
  EXPECT_GE(staged, 16);
  ASSERT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 4)), IsOk());
  EXPECT_EQ(shard_->GetEventState()->load.staged_bytes, 2 * staged);
  ASSERT_THAT(shard_->Discard(kRank1, 1), IsOk());
  EXPECT_EQ(shard_->GetEventState()->load.staged_bytes, staged);
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  EXPECT_EQ(shard_->GetEventState()->load.staged_bytes, 0);
}

}  // namespace
}  // namespace rowhouse::testing
