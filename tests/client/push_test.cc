// What a trainer contributes.

#include <cmath>
#include <vector>

#include "client/internal/trainer_core.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

class PushTest : public TrainerTest {};

TEST_F(PushTest, AnEventMovesTheRowsOfEveryShard) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {11, 0, 5}, {1, 1, -1}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_THAT(PullFloats(*trainer, {0, 1, 5, 11}, {.min_event = 1}),
              ::testing::Property(&absl::StatusOr<std::vector<float>>::value,
                                  ElementsAre(-1, -1, 0, 0, 1, 1, -1, -1)));
}

TEST_F(PushTest, PartsAreNumberedInTurnAndAllCount) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_EQ(PushFloats(*trainer, 1, {0}, {1})->part, 0);
  EXPECT_EQ(PushFloats(*trainer, 1, {4}, {1})->part, 1);
  EXPECT_EQ(PushFloats(*trainer, 2, {0}, {1})->part, 0);
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(trainer->next_event(), 2);
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(PushTest, APushMayCarryTheSeal) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {1}, {.seal = true}), IsOk());
  EXPECT_EQ(trainer->next_event(), 2);
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  EXPECT_THAT(trainer->WaitForEvent(1), IsOk());
}

TEST_F(PushTest, AContributionOfNothingIsValid) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {}, {}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(2, SignStep()), IsOk());
  EXPECT_THAT(trainer->WaitForEvent(2), IsOk());
}

TEST_F(PushTest, TheRowsOfAPullNeedNoIds) {
  MakeTable(Spec());
  const auto trainer = Join();
  RowSet rows;
  ASSERT_THAT(PullFloats(*trainer, {8, 0, 8}, {}, &rows), IsOk());
  const std::vector<float> gradients = {1, 1, -1, -1, 1, 1};
  ASSERT_THAT(trainer->Push(1, rows, std::as_bytes(std::span(gradients))),
              IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {8, 0}, {.min_event = 1}),
            (std::vector<float>{-1, -1, 1, 1}));
}

TEST_F(PushTest, RowsWhoseHandleIsGoneAreSentByTheirIds) {
  MakeTable(Spec());
  const auto trainer = Join();
  RowSet rows;
  ASSERT_THAT(PullFloats(*trainer, {8, 0}, {}, &rows), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SkipEvent{}), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  const std::vector<float> gradients = {1, 1, -1, -1};
  ASSERT_THAT(trainer->Push(2, rows, std::as_bytes(std::span(gradients))),
              IsOk());
  ASSERT_THAT(trainer->SealAndCommit(2, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {8, 0}, {.min_event = 2}),
            (std::vector<float>{-1, -1, 1, 1}));
}

TEST_F(PushTest, BitsDoNotDependOnHowMessagesAreCut) {
  std::vector<uint64_t> digests;
  for (const int64_t message_bytes : {8, 24, 1 << 20}) {
    MakeTable(Spec());
    {
      const auto trainer = Join();
      trainer->core()->router().set_message_bytes(message_bytes);
      ASSERT_THAT(PushFloats(*trainer, 1, {0, 1, 2, 0, 3, 9, 0, 0, 9},
                             {1e8F, 3, 1, 2.5F, -1e8F, 7, 0.1F, 9, 1}),
                  IsOk());
      ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
      ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
    }
    digests.push_back(cluster_->Digest("t")->digest);
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

TEST_F(PushTest, BitsDoNotDependOnTheNumberOfShards) {
  std::vector<uint64_t> digests;
  for (const int32_t shard_count : {1, 2, 3}) {
    TableSpec spec = Spec();
    spec.shard_count = shard_count;
    MakeTable(spec);
    {
      const auto trainer = Join();
      ASSERT_THAT(PushFloats(*trainer, 1, {0, 11, 5, 0}, {1, 2, 3, 4}), IsOk());
      ASSERT_THAT(PushFloats(*trainer, 1, {4, 0}, {1, 0.1F}), IsOk());
      ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
      ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
    }
    digests.push_back(cluster_->Digest("t")->digest);
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

TEST_F(PushTest, TheSamePartAgainIsADuplicate) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_FALSE(PushFloats(*trainer, 1, {0, 4}, {1, 1}, {.part = 0})->duplicate);
  EXPECT_TRUE(PushFloats(*trainer, 1, {0, 4}, {1, 1}, {.part = 0})->duplicate);
}

TEST_F(PushTest, ThePartWithOtherContentIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1}, {.part = 0}), IsOk());
  EXPECT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 2}, {.part = 0}),
              Fails(absl::StatusCode::kAlreadyExists, "PART_DIFFERS"));
}

TEST_F(PushTest, APartRepeatedAfterItsEventWasAppliedCountsOnce) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {1}, {.part = 0, .seal = true}),
              IsOk());
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  const auto again =
      PushFloats(*trainer, 1, {0}, {1}, {.part = 0, .seal = true});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(*PullFloats(*trainer, {0}), (std::vector<float>{-1, -1}));
}

TEST_F(PushTest, AMissingPartCannotBeSealed) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {1}, {.part = 1}), IsOk());
  EXPECT_THAT(trainer->Seal(1),
              Fails(absl::StatusCode::kFailedPrecondition, "PARTS_MISSING"));
}

TEST_F(PushTest, APartAfterTheSealIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(trainer->Seal(1), IsOk());
  EXPECT_THAT(
      PushFloats(*trainer, 1, {0}, {1}),
      Fails(absl::StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(PushTest, AnEventTooFarAheadIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(PushFloats(*trainer, 3, {0}, {1}),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_AHEAD"));
}

TEST_F(PushTest, AFailedPushChangesNothingAndMayBeReplaced) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(PushFloats(*trainer, 1, {0, 1}, {1, NAN}),
              Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
  EXPECT_EQ(PushFloats(*trainer, 1, {0, 1}, {1, 1})->part, 0);
}

// Row 11 lies on the last shard, row 0 on the first, which accepts its share.
TEST_F(PushTest, APartThatOneShardRefusesSealsNoShard) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(PushFloats(*trainer, 1, {0, 11}, {1, NAN}, {.seal = true}),
              Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
  EXPECT_EQ(trainer->next_event(), 1);
  ASSERT_THAT(trainer->Discard(1), IsOk());
  ASSERT_THAT(PushFloats(*trainer, 1, {0, 11}, {-1, 1}, {.seal = true}),
              IsOk());
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 11}, {.min_event = 1}),
            (std::vector<float>{1, 1, -1, -1}));
}

TEST_F(PushTest, ASealedContributionCannotBeDiscarded) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {1}, {.seal = true}), IsOk());
  EXPECT_THAT(trainer->Discard(1), Fails(absl::StatusCode::kFailedPrecondition,
                                         "CONTRIBUTION_SEALED"));
  // Nor one that a predecessor sealed.
  const auto successor = Join();
  EXPECT_THAT(
      successor->Discard(1),
      Fails(absl::StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  ASSERT_THAT(successor->Commit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*successor, {0}, {.min_event = 1}),
            (std::vector<float>{-1, -1}));
}

TEST_F(PushTest, DiscardedPartsDoNotCount) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1}), IsOk());
  ASSERT_THAT(trainer->Discard(1), IsOk());
  EXPECT_EQ(PushFloats(*trainer, 1, {4}, {1})->part, 0);
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{0, 0, -1, -1}));
}

TEST_F(PushTest, GradientsOfAnotherSizeAreRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0, 1};
  const std::vector<float> gradients(3);
  EXPECT_THAT(
      trainer->Push(1, row_ids, std::as_bytes(std::span(gradients))),
      StatusIs(absl::StatusCode::kInvalidArgument, "12 bytes, wanted 16"));
}

}  // namespace
}  // namespace rowhouse::client
