// Lives of trainers: joining, racing, dying, being replaced.

#include <atomic>
#include <thread>
#include <vector>

#include "client/internal/trainer_core.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::IsOk;

class SessionTest : public TrainerTest {
 protected:
  // Seals on one server as `trainer`, which then looks as if it had died.
  void SealOn(int32_t server, Trainer& trainer, int64_t event,
              int32_t part_count) {
    internal::ClusterCore& core = *cluster_->core();
    ASSERT_THAT(
        core.channel(server).Seal("t", trainer.core()->session(), event,
                                  part_count, core.Context(absl::Seconds(30))),
        IsOk());
  }
};

TEST_F(SessionTest, EveryLifeHasAHigherNumber) {
  MakeTable(Spec());
  EXPECT_EQ(Join()->session(), 1);
  EXPECT_EQ(Join()->session(), 2);
}

TEST_F(SessionTest, ARankOutOfRangeIsRefused) {
  MakeTable(Spec(2));
  EXPECT_THAT(Trainer::Join(*cluster_, "t", 2),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_RANK"));
  EXPECT_THAT(Trainer::Join(*cluster_, "t", -1),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_RANK"));
}

TEST_F(SessionTest, ATableThatIsNotThereIsNotFound) {
  EXPECT_THAT(Trainer::Join(*cluster_, "t", 0),
              Fails(absl::StatusCode::kNotFound, "NO_SUCH_TABLE"));
}

TEST_F(SessionTest, ANewerLifeFencesTheOlder) {
  MakeTable(Spec());
  const auto older = Join();
  const auto newer = Join();
  EXPECT_THAT(PushFloats(*older, 1, {0}, {1}),
              Fails(absl::StatusCode::kAborted, "FENCED"));
  EXPECT_THAT(older->Seal(1), Fails(absl::StatusCode::kAborted, "FENCED"));
  EXPECT_THAT(PushFloats(*newer, 1, {0}, {1}), IsOk());
}

TEST_F(SessionTest, OfRacingTrainersOneIsLeft) {
  constexpr int kTrainers = 4;
  MakeTable(Spec());
  std::vector<std::unique_ptr<Trainer>> trainers(kTrainers);
  std::vector<std::thread> threads;
  for (auto& trainer : trainers) {
    threads.emplace_back([&] { trainer = Join(); });
  }
  for (std::thread& thread : threads) thread.join();
  int alive = 0;
  for (const auto& trainer : trainers) {
    ASSERT_NE(trainer, nullptr);
    if (PushFloats(*trainer, 1, {0, 4, 8}, {1, 1, 1}).ok()) ++alive;
  }
  EXPECT_EQ(alive, 1);
}

TEST_F(SessionTest, WhatADeadTrainerHadNotSealedIsDropped) {
  MakeTable(Spec());
  ASSERT_THAT(PushFloats(*Join(), 1, {0, 4}, {1, 1}), IsOk());
  const auto trainer = Join();
  EXPECT_EQ(trainer->next_event(), 1);
  ASSERT_THAT(PushFloats(*trainer, 1, {4}, {-1}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{0, 0, 1, 1}));
}

TEST_F(SessionTest, WhatItHadSealedOnSomeShardsIsDroppedToo) {
  MakeTable(Spec());
  {
    const auto dead = Join();
    ASSERT_THAT(PushFloats(*dead, 1, {0, 4}, {1, 1}), IsOk());
    SealOn(1, *dead, 1, 1);
  }
  const auto trainer = Join();
  EXPECT_EQ(trainer->next_event(), 1);
  ASSERT_THAT(PushFloats(*trainer, 1, {4}, {-1}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{0, 0, 1, 1}));
}

TEST_F(SessionTest, WhatItHadSealedEverywhereIsFinal) {
  MakeTable(Spec(2));
  const auto rank0 = Join(0);
  {
    const auto dead = Join(1);
    ASSERT_THAT(PushFloats(*dead, 1, {0, 4}, {1, 1}, {.seal = true}), IsOk());
  }
  const auto rank1 = Join(1);
  EXPECT_EQ(rank1->next_event(), 2);
  EXPECT_THAT(
      PushFloats(*rank1, 1, {0}, {1}),
      Fails(absl::StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  ASSERT_THAT(rank0->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*rank1, {0, 4}, {.min_event = 1}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(SessionTest, ACommitWaitsForTheSuccessorOfAHalfSealedContribution) {
  MakeTable(Spec(2));
  const auto rank0 = Join(0);
  ASSERT_THAT(rank0->SealAndCommit(1, SignStep()), IsOk());
  {
    const auto dead = Join(1);
    ASSERT_THAT(PushFloats(*dead, 1, {0, 4}, {1, 1}), IsOk());
    SealOn(0, *dead, 1, 1);
    SealOn(2, *dead, 1, 1);
  }
  const auto rank1 = Join(1);
  ASSERT_THAT(PushFloats(*rank1, 1, {8}, {1}), IsOk());
  ASSERT_THAT(rank1->Seal(1), IsOk());
  ASSERT_THAT(rank0->WaitForEvent(1), IsOk());
  EXPECT_EQ(*PullFloats(*rank1, {0, 4, 8}),
            (std::vector<float>{0, 0, 0, 0, -1, -1}));
}

TEST_F(SessionTest, ARank0ThatDiesBetweenTwoCommitsIsFinishedByItsSuccessor) {
  MakeTable(Spec());
  Gate committed;
  const auto dying =
      servers_.Connect([&](int32_t server, std::string_view method) {
        if (method != "Commit" || server == 0) return Fault::kNone;
        committed.Open();
        return Fault::kLoseRequest;
      });
  {
    const auto dead = JoinBy(*dying, 0);
    ASSERT_THAT(PushFloats(*dead, 1, {0, 4}, {1, 1}), IsOk());
    ASSERT_THAT(dead->SealAndCommit(1, SignStep()), IsOk());
    committed.Wait();
    // Server 0 applies the event, the others do not hear of it.
    internal::ClusterCore& core = *cluster_->core();
    ASSERT_THAT(core.CallServer(0, core.Context(absl::Seconds(30)),
                                [&](internal::ShardChannel& channel) {
                                  return channel
                                      .GetEventState(
                                          "t", {.applied_event = 1},
                                          core.Context(absl::Seconds(30)))
                                      .status();
                                }),
                IsOk());
  }
  const auto trainer = Join();
  EXPECT_EQ(trainer->next_event(), 2);
  EXPECT_EQ(trainer->next_commit(), 2);
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(SessionTest, ASealedEventWhoseDecisionIsLostIsDecidedAgain) {
  MakeTable(Spec());
  {
    const auto dead = Join();
    ASSERT_THAT(PushFloats(*dead, 1, {0, 4}, {1, 1}, {.seal = true}), IsOk());
  }
  const auto trainer = Join();
  EXPECT_EQ(trainer->next_event(), 2);
  EXPECT_EQ(trainer->next_commit(), 1);
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(SessionTest, TheLeaseIsRenewedByTheLibrary) {
  servers_.limits().lease = absl::Milliseconds(30);
  MakeTable(Spec());
  Gate renewed;
  std::atomic<int> count = 0;
  const auto cluster = servers_.Connect([&](int32_t, std::string_view method) {
    if (method == "KeepAlive" && ++count == 9) renewed.Open();
    return Fault::kNone;
  });
  const auto trainer = JoinBy(*cluster, 0);
  renewed.Wait();
}

}  // namespace
}  // namespace rowhouse::client
