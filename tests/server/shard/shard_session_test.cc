// Sessions fence, discards drop, commits come from rank 0.

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::SizeIs;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr server::TrainerSession kSuccessor0{0, 2};

class ShardSessionTest : public ShardTest {};

TEST_F(ShardSessionTest, EveryCallOfAFencedSessionIsAborted) {
  StartWithSessions();
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Seal(kRank0, 1, 0), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Discard(kRank0, 1), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->KeepAlive(kRank0), Fails(kAborted, "FENCED"));
  server::PullRequest request;
  request.trainer = kRank0;
  EXPECT_THAT(shard_->Pull({1}, request), Fails(kAborted, "FENCED"));
}

TEST_F(ShardSessionTest, FencingIsAskedBeforeAnythingElse) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  // A known part, and numbers that are wrong besides.
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 0, -1, 99)),
              Fails(kAborted, "FENCED"));
}

TEST_F(ShardSessionTest, ASessionMustHaveBeenOpenedHere) {
  Start();
  EXPECT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)),
              Fails(kPrecondition, "NO_SESSION"));
  ASSERT_THAT(shard_->OpenSession(kRank0), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kSuccessor0, 1, 0, 3)),
              Fails(kPrecondition, "NO_SESSION"));
}

TEST_F(ShardSessionTest, ANewSessionDropsUnsealedPartsOfBothEvents) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 2, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  const auto state = shard_->GetEventState();
  ASSERT_THAT(state->open_events, SizeIs(1));
  ASSERT_THAT(state->open_events[0].contributions, SizeIs(1));
  EXPECT_EQ(state->open_events[0].contributions[0].trainer_rank, 1);
  // The names are free again.
  EXPECT_FALSE(shard_->Push(OneRow(kSuccessor0, 1, 0, 5))->duplicate);
}

TEST_F(ShardSessionTest, ARepeatedOpeningDropsNothing) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->OpenSession(kRank0, 1), IsOk());
  EXPECT_THAT(shard_->GetEventState()->open_events, SizeIs(1));
  EXPECT_THAT(shard_->OpenSession(kRank0, 2), Fails(kAborted, "FENCED"));
}

TEST_F(ShardSessionTest, ANewSessionAbortsPartsThatAreLanding) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landed = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**landed, part), IsOk());
  const auto landing = shard_->Begin(OneRow(kRank0, 2, 0, 3));
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  EXPECT_THAT(shard_->Land(**landing, part), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Finish(*std::move(landed), part),
              Fails(kAborted, "FENCED"));
}

TEST_F(ShardSessionTest, ASealedContributionOutlivesItsSession) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  const auto state = shard_->GetEventState();
  ASSERT_THAT(state->open_events, SizeIs(1));
  EXPECT_EQ(state->open_events[0].contributions[0].session, 1);
  EXPECT_TRUE(state->open_events[0].contributions[0].sealed);
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  EXPECT_THAT(shard_->Commit(kSuccessor0, 1, Commit({2, 1})),
              Fails(kPrecondition, "SESSIONS_DIFFER"));
  EXPECT_THAT(shard_->Commit(kSuccessor0, 1, Commit({1, 1})), IsOk());
}

TEST_F(ShardSessionTest, ASuccessorMayDiscardASealAndSendAgain) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  EXPECT_THAT(shard_->Discard(kRank0, 1),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  EXPECT_THAT(shard_->Push(OneRow(kSuccessor0, 1, 1, 3)),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_EQ(*shard_->Discard(kSuccessor0, 1), 1);
  EXPECT_EQ(*shard_->Discard(kSuccessor0, 1), 0);
  EXPECT_FALSE(shard_->Push(OneRow(kSuccessor0, 1, 0, 4))->duplicate);
  EXPECT_THAT(shard_->Seal(kSuccessor0, 1, 1), IsOk());
}

TEST_F(ShardSessionTest, DiscardDropsOwnPartsAndThoseLanding) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 1, 3);
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  auto landing = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  EXPECT_EQ(*shard_->Discard(kRank0, 1), 1);
  EXPECT_THAT(shard_->Finish(*std::move(landing), part),
              Fails(kAborted, "SUPERSEDED"));
  EXPECT_FALSE(shard_->Push(OneRow(kRank0, 1, 0, 9))->duplicate);
}

TEST_F(ShardSessionTest, ARetryThatADiscardOvertakesIsSentAgain) {
  StartWithSessions();
  const PartToPush part = OneRow(kRank0, 1, 0, 3);
  ASSERT_THAT(shard_->Push(part), IsOk());
  auto retry = shard_->Begin(part);
  ASSERT_THAT(shard_->Land(**retry, part), IsOk());
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  EXPECT_THAT(shard_->Finish(*std::move(retry), part),
              Fails(kAborted, "SUPERSEDED"));
  EXPECT_FALSE(shard_->Push(part)->duplicate);
}

TEST_F(ShardSessionTest, NothingIsDiscardedOfAnAppliedEvent) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  EXPECT_THAT(shard_->Discard(kRank0, 1), Fails(kPrecondition, "EVENT_PAST"));
  EXPECT_THAT(shard_->Discard(kRank0, 0), Fails(kInvalid, "BAD_EVENT"));
}

TEST_F(ShardSessionTest, OnlyRank0Commits) {
  StartWithSessions();
  EXPECT_THAT(shard_->Commit(kRank1, 1, Commit()),
              Fails(kPrecondition, "NOT_RANK_0"));
}

TEST_F(ShardSessionTest, ASuccessorOfRank0RepeatsARecordedCommit) {
  StartWithSessions();
  ApplyEmptyEvent(1);
  ASSERT_THAT(shard_->OpenSession(kSuccessor0), IsOk());
  const auto state = shard_->GetEventState();
  ASSERT_THAT(state->applied_events, SizeIs(1));
  EXPECT_EQ(*shard_->Commit(kSuccessor0, 1, state->applied_events[0].commit),
            true);
  EXPECT_EQ(AppliedEvent(), 1);
}

TEST_F(ShardSessionTest, RanksLieWithinTheLargestTrainerCount) {
  Start();
  EXPECT_THAT(shard_->OpenSession({2, 1}), Fails(kInvalid, "BAD_RANK"));
  EXPECT_THAT(shard_->OpenSession({-1, 1}), Fails(kInvalid, "BAD_RANK"));
  EXPECT_THAT(shard_->OpenSession({0, 0}), Fails(kInvalid, "BAD_SESSION"));
  // A scheduled event's trainers may come early.
  ASSERT_THAT(shard_->SetTrainerCount(3, 5), IsOk());
  EXPECT_THAT(shard_->OpenSession({2, 1}), IsOk());
}

TEST_F(ShardSessionTest, KeepAliveRenewsTheLease) {
  Start();
  ASSERT_THAT(shard_->OpenSession(kRank0), IsOk());
  timers_.Advance(absl::Seconds(20));
  ASSERT_THAT(shard_->KeepAlive(kRank0), IsOk());
  timers_.Advance(absl::Seconds(30));
  auto state = shard_->GetEventState();
  ASSERT_THAT(state->sessions, SizeIs(1));
  EXPECT_EQ(state->sessions[0].trainer, kRank0);
  EXPECT_EQ(state->sessions[0].idle, absl::Seconds(30));
  EXPECT_FALSE(state->sessions[0].lease_expired);
  timers_.Advance(absl::Seconds(1));
  state = shard_->GetEventState();
  EXPECT_TRUE(state->sessions[0].lease_expired);
}

}  // namespace
}  // namespace rowhouse::testing
