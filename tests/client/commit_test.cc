// How rank 0 commits.

#include <cmath>
#include <vector>

#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class CommitTest : public TrainerTest {};

TEST_F(CommitTest, AnEventWaitsForEveryRank) {
  MakeTable(Spec(2));
  const auto rank0 = Join(0);
  const auto rank1 = Join(1);
  ASSERT_THAT(PushFloats(*rank0, 1, {0}, {1}), IsOk());
  ASSERT_THAT(rank0->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_THAT(rank0->WaitForEvent(1, {.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  ASSERT_THAT(PushFloats(*rank1, 1, {4}, {1}), IsOk());
  ASSERT_THAT(rank1->Seal(1), IsOk());
  ASSERT_THAT(rank0->WaitForEvent(1), IsOk());
  EXPECT_EQ(*PullFloats(*rank1, {0, 4}), (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(CommitTest, TwoEventsMayBeDecidedAhead) {
  MakeTable(Spec(2));
  const auto rank0 = Join(0);
  const auto rank1 = Join(1);
  for (const int64_t event : {1, 2}) {
    ASSERT_THAT(PushFloats(*rank0, event, {0}, {1}), IsOk());
    ASSERT_THAT(rank0->SealAndCommit(event, SignStep()), IsOk());
  }
  for (const int64_t event : {1, 2}) ASSERT_THAT(rank1->Seal(event), IsOk());
  ASSERT_THAT(rank1->WaitForEvent(2), IsOk());
  EXPECT_EQ(*PullFloats(*rank1, {0}), (std::vector<float>{-2, -2}));
}

TEST_F(CommitTest, ASkippedEventAdvancesTheNumberAndNoRow) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SkipEvent{}), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{0, 0, 0, 0}));
}

TEST_F(CommitTest, ADecisionMaySeeTheMergedGradient) {
  MakeTable(Spec(2));
  const auto rank0 = Join(0);
  const auto rank1 = Join(1);
  ASSERT_THAT(PushFloats(*rank0, 1, {0, 4}, {1, 2}), IsOk());
  ASSERT_THAT(PushFloats(*rank1, 1, {4, 11}, {2, 3}), IsOk());
  ASSERT_THAT(rank1->Seal(1), IsOk());
  GradientStatistics seen;
  ASSERT_THAT(rank0->SealAndCommit(
                  1, DecideEvent([&](const GradientStatistics& statistics)
                                     -> absl::StatusOr<EventUpdate> {
                    seen = statistics;
                    return SignStep();
                  })),
              IsOk());
  ASSERT_THAT(rank0->WaitForEvent(1), IsOk());
  // Rows of two elements: 2 * (1 + 4 * 4 + 9).
  EXPECT_EQ(seen.sum_of_squares, 52);
  EXPECT_EQ(seen.row_count, 3);
  EXPECT_EQ(seen.non_finite_row_count, 0);
}

TEST_F(CommitTest, ClippingByTheNormScalesEveryGradient) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {3}), IsOk());
  const auto clip =
      [](const GradientStatistics& statistics) -> absl::StatusOr<EventUpdate> {
    RowAdamScalars scalars{.step_size = 1, .decay = 0, .beta2 = 0, .eps = 1};
    scalars.gradient_scale = 1 / std::sqrt(statistics.sum_of_squares / 2);
    return scalars;
  };
  ASSERT_THAT(trainer->SealAndCommit(1, DecideEvent(clip)), IsOk());
  // g = 3 / 3, v = 1: 1 / (sqrt(1) + 1).
  const auto rows = PullFloats(*trainer, {0}, {.min_event = 1});
  ASSERT_THAT(rows, IsOk());
  EXPECT_FLOAT_EQ((*rows)[0], -0.5F);
}

TEST_F(CommitTest, StatisticsCountRowsThatAreNotFinite) {
  TableSpec spec = Spec();
  spec.non_finite_policy = NonFinitePolicy::kSkipRow;
  MakeTable(spec);
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0, 4, 8}, {1, NAN, INFINITY}), IsOk());
  const auto skip_bad =
      [](const GradientStatistics& statistics) -> absl::StatusOr<EventUpdate> {
    if (statistics.non_finite_row_count == 2) return SkipEvent{};
    return SignStep();
  };
  ASSERT_THAT(trainer->SealAndCommit(1, DecideEvent(skip_bad)), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0}, {.min_event = 1}),
            (std::vector<float>{0, 0}));
}

TEST_F(CommitTest, AnErrorOfTheDecisionSurfacesUntilTheEventIsDecidedAgain) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(PushFloats(*trainer, 1, {0}, {1}), IsOk());
  const auto fail =
      [](const GradientStatistics&) -> absl::StatusOr<EventUpdate> {
    return absl::InternalError("cannot decide");
  };
  ASSERT_THAT(trainer->SealAndCommit(1, DecideEvent(fail)), IsOk());
  EXPECT_THAT(trainer->WaitForEvent(1),
              StatusIs(absl::StatusCode::kInternal, "cannot decide"));
  EXPECT_THAT(trainer->Seal(2),
              StatusIs(absl::StatusCode::kInternal, "cannot decide"));
  EXPECT_EQ(trainer->next_commit(), 1);
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  EXPECT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_THAT(trainer->Seal(2), IsOk());
}

TEST_F(CommitTest, OnlyRank0Commits) {
  MakeTable(Spec(2));
  const auto rank1 = Join(1);
  EXPECT_THAT(rank1->Commit(1, SignStep()),
              Fails(absl::StatusCode::kFailedPrecondition, "NOT_RANK_0"));
}

TEST_F(CommitTest, EventsAreDecidedInOrder) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(trainer->Commit(2, SignStep()),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_AHEAD"));
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_THAT(trainer->Commit(1, SignStep()),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(CommitTest, AFencedCommitterSaysSo) {
  MakeTable(Spec());
  const auto older = Join();
  ASSERT_THAT(PushFloats(*older, 1, {0}, {1}, {.seal = true}), IsOk());
  const auto newer = Join();
  ASSERT_THAT(older->Commit(1, SignStep()), IsOk());
  EXPECT_THAT(older->WaitForEvent(1),
              Fails(absl::StatusCode::kAborted, "FENCED"));
}

}  // namespace
}  // namespace rowhouse::client
