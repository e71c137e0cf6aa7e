#include "server/shard/events.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Detail;
using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kExists = absl::StatusCode::kAlreadyExists;

class EventsTest : public ::testing::Test {
 protected:
  // A part whose slots tell it from others.
  StagedPart Part(int64_t row_count, int64_t mark = 0) {
    StagedPart part = *StagedPart::Allocate(*backend_, row_count, 8);
    for (int64_t i = 0; i < row_count; ++i) part.slots()[i] = mark;
    return part;
  }

  void SealEmpty(int64_t event, int64_t session = 1) {
    for (int32_t rank = 0; rank < 2; ++rank) {
      ASSERT_THAT(events_.CheckSeal({rank, session}, event, 0), IsOk());
      events_.Seal({rank, session}, event);
    }
  }

  void Apply(int64_t event) {
    SealEmpty(event);
    ASSERT_EQ(*events_.CheckCommit(event, commit_, GradientReduction::kSum),
              false);
    events_.Archive(commit_, {});
  }

  std::unique_ptr<kernels::Backend> backend_ =
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1));
  Events events_{2, 8};
  EventCommit commit_{{1, 1}, false, {0.1, 0, 0.9, 1e-8, 1}};
};

TEST_F(EventsTest, TwoEventsAreOpenAndTwoAreKept) {
  for (int64_t event = 1; event <= 3; ++event) Apply(event);
  EXPECT_EQ(events_.applied(), 3);
  EXPECT_EQ(events_.AgeOf(1), Events::Age::kForgotten);
  EXPECT_EQ(events_.AgeOf(2), Events::Age::kApplied);
  EXPECT_EQ(events_.AgeOf(3), Events::Age::kApplied);
  EXPECT_EQ(events_.AgeOf(4), Events::Age::kOpen);
  EXPECT_EQ(events_.AgeOf(5), Events::Age::kOpen);
  EXPECT_EQ(events_.AgeOf(6), Events::Age::kAhead);
}

TEST_F(EventsTest, PartsComeInTheOrderOfRankThenNumber) {
  events_.Stage({1, 1, 0}, 1, Part(1, 10));
  events_.Stage({1, 0, 7}, 1, Part(1, 7));
  events_.Stage({1, 0, 2}, 1, Part(1, 2));
  events_.Stage({2, 0, 0}, 1, Part(1, 99));
  events_.Stage({1, 0, 3}, 1, Part(0));
  std::vector<int64_t> marks;
  for (const kernels::GradientPart& part : events_.PartsOf(1)) {
    marks.push_back(part.slots[0]);
  }
  EXPECT_THAT(marks, ElementsAre(2, 7, 10));
}

TEST_F(EventsTest, ASealNamesTheFirstMissingPart) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Stage({1, 0, 2}, 1, Part(1));
  const absl::Status missing = events_.CheckSeal({0, 1}, 1, 4);
  EXPECT_THAT(missing, Fails(kPrecondition, "PARTS_MISSING"));
  EXPECT_EQ(Detail(missing, "part"), "1");
}

TEST_F(EventsTest, AnArrivingPartCountsForTheSeal) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 2, 1), IsOk());
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 3, 1),
              Fails(kPrecondition, "PARTS_MISSING"));
}

TEST_F(EventsTest, ASealOfFewerPartsThanAreStagedIsRefused) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Stage({1, 0, 1}, 1, Part(1));
  const absl::Status beyond = events_.CheckSeal({0, 1}, 1, 1);
  EXPECT_THAT(beyond, Fails(kInvalid, "BAD_COUNT"));
  EXPECT_EQ(Detail(beyond, "part"), "1");
}

TEST_F(EventsTest, TheSameSealAgainIsOk) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Seal({0, 1}, 1);
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 1), IsOk());
}

TEST_F(EventsTest, AnotherCountOrSessionFindsItSealed) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Seal({0, 1}, 1);
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 0),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(events_.CheckSeal({0, 2}, 1, 1),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(events_.CheckPart({1, 0, 1}),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
}

TEST_F(EventsTest, ASealOfAnAppliedEventIsComparedWhileItIsKept) {
  Apply(1);
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 0), IsOk());
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 1),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(events_.CheckSeal({0, 2}, 1, 0),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  Apply(2);
  Apply(3);
  EXPECT_THAT(events_.CheckSeal({0, 9}, 1, 5), IsOk());
}

TEST_F(EventsTest, SealsOutsideTheirRangesAreRefused) {
  EXPECT_THAT(events_.CheckSeal({0, 1}, 0, 0), Fails(kInvalid, "BAD_EVENT"));
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, -1), Fails(kInvalid, "BAD_PART"));
  EXPECT_THAT(events_.CheckSeal({0, 1}, 1, 9), Fails(kInvalid, "BAD_PART"));
  EXPECT_THAT(events_.CheckSeal({2, 1}, 1, 0), Fails(kInvalid, "BAD_RANK"));
  EXPECT_THAT(events_.CheckSeal({0, 1}, 3, 0),
              Fails(kPrecondition, "EVENT_AHEAD"));
}

TEST_F(EventsTest, ACommitWaitsForAllRanks) {
  events_.Seal({0, 1}, 1);
  const absl::Status refused =
      events_.CheckCommit(1, commit_, GradientReduction::kSum).status();
  EXPECT_THAT(refused, Fails(kPrecondition, "NOT_SEALED"));
  EXPECT_EQ(Detail(refused, "trainer_rank"), "1");
  EXPECT_EQ(*events_.CheckCommit(1, commit_, GradientReduction::kSum,
                                 TrainerSession{1, 1}),
            false);
}

TEST_F(EventsTest, ACommitNamesTheSessionsThatSealed) {
  SealEmpty(1, 5);
  const absl::Status refused =
      events_.CheckCommit(1, commit_, GradientReduction::kSum).status();
  EXPECT_THAT(refused, Fails(kPrecondition, "SESSIONS_DIFFER"));
  EXPECT_EQ(Detail(refused, "session"), "5");
  commit_.sessions = {5, 5};
  EXPECT_THAT(events_.CheckCommit(1, commit_, GradientReduction::kSum), IsOk());
}

TEST_F(EventsTest, ACommitNamesOneSessionARank) {
  SealEmpty(1);
  commit_.sessions = {1};
  EXPECT_THAT(events_.CheckCommit(1, commit_, GradientReduction::kSum),
              Fails(kInvalid, "BAD_COMMIT"));
}

TEST_F(EventsTest, OnlyTheNextEventIsCommitted) {
  SealEmpty(2);
  EXPECT_THAT(events_.CheckCommit(2, commit_, GradientReduction::kSum),
              Fails(kPrecondition, "EVENT_AHEAD"));
  EXPECT_THAT(events_.CheckCommit(0, commit_, GradientReduction::kSum),
              Fails(kInvalid, "BAD_EVENT"));
}

TEST_F(EventsTest, ACommitOfAnAppliedEventIsComparedWhileItIsKept) {
  Apply(1);
  Apply(2);
  EventCommit other = commit_;
  other.scalars.eps = 0;
  EXPECT_EQ(*events_.CheckCommit(1, commit_, GradientReduction::kSum), true);
  EXPECT_THAT(events_.CheckCommit(1, other, GradientReduction::kSum),
              Fails(kExists, "COMMIT_DIFFERS"));
  Apply(3);
  EXPECT_EQ(*events_.CheckCommit(1, other, GradientReduction::kSum), true);
}

TEST_F(EventsTest, TheDivisorEntersTheCheckOfScalars) {
  SealEmpty(1);
  commit_.scalars.beta2 = 0;
  commit_.scalars.gradient_scale = 2.5e19;  // Halved, its square fits fp32.
  EXPECT_THAT(events_.CheckCommit(1, commit_, GradientReduction::kSum),
              Fails(kInvalid, "BAD_SCALAR"));
  EXPECT_THAT(events_.CheckCommit(1, commit_, GradientReduction::kMean),
              IsOk());
}

TEST_F(EventsTest, ASkippedEventNeedsNoScalars) {
  SealEmpty(1);
  commit_.skip = true;
  commit_.scalars.beta2 = 7;
  EXPECT_THAT(events_.CheckCommit(1, commit_, GradientReduction::kSum), IsOk());
}

TEST_F(EventsTest, DiscardDropsUnsealedPartsAndCountsThem) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Stage({1, 0, 1}, 1, Part(1));
  EXPECT_EQ(*events_.Discard({0, 1}, 1), 2);
  EXPECT_EQ(events_.Find(1, 0), nullptr);
  EXPECT_EQ(*events_.Discard({0, 1}, 1), 0);
}

TEST_F(EventsTest, ASealIsDroppedByALaterSessionOnly) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Seal({0, 1}, 1);
  EXPECT_THAT(events_.Discard({0, 1}, 1),
              Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_EQ(*events_.Discard({0, 2}, 1), 1);
}

TEST_F(EventsTest, NothingIsDroppedOfAnAppliedEvent) {
  Apply(1);
  EXPECT_THAT(events_.Discard({0, 2}, 1), Fails(kPrecondition, "EVENT_PAST"));
  EXPECT_THAT(events_.Discard({0, 2}, 0), Fails(kInvalid, "BAD_EVENT"));
}

TEST_F(EventsTest, ASuccessorFindsOnlySealedContributions) {
  events_.Stage({1, 0, 0}, 1, Part(1));
  events_.Seal({0, 1}, 1);
  events_.Stage({2, 0, 0}, 1, Part(1));
  events_.Stage({2, 1, 0}, 1, Part(1));
  EXPECT_THAT(events_.DropUnsealed(0), ElementsAre(2));
  EXPECT_NE(events_.Find(1, 0), nullptr);
  EXPECT_EQ(events_.Find(2, 0), nullptr);
  EXPECT_NE(events_.Find(2, 1), nullptr);
}

TEST_F(EventsTest, DescribesOpenEventsThatHaveContributions) {
  EXPECT_THAT(events_.DescribeOpen(), IsEmpty());
  events_.Stage({2, 1, 0}, 4, Part(3));
  const std::vector<OpenEventState> open = events_.DescribeOpen();
  ASSERT_THAT(open, SizeIs(1));
  EXPECT_EQ(open[0].event, 2);
  EXPECT_EQ(open[0].trainer_count, 2);
  EXPECT_FALSE(open[0].all_sealed);
  ASSERT_THAT(open[0].contributions, SizeIs(1));
  EXPECT_EQ(open[0].contributions[0].trainer_rank, 1);
  EXPECT_EQ(open[0].contributions[0].session, 4);
  EXPECT_EQ(open[0].contributions[0].part_count, 1);
  EXPECT_EQ(open[0].contributions[0].row_count, 3);
  EXPECT_FALSE(open[0].contributions[0].sealed);
}

TEST_F(EventsTest, DescribesTheLastTwoCommits) {
  for (int64_t event = 1; event <= 3; ++event) Apply(event);
  const std::vector<AppliedEventState> applied = events_.DescribeApplied();
  ASSERT_THAT(applied, SizeIs(2));
  EXPECT_EQ(applied[0].event, 2);
  EXPECT_EQ(applied[1].event, 3);
  EXPECT_EQ(applied[1].commit, commit_);
}

TEST_F(EventsTest, TheTrainerCountOfTheEventDecides) {
  ASSERT_THAT(events_.trainer_counts().Set({3, 1}, 0), IsOk());
  Apply(1);
  Apply(2);
  EXPECT_THAT(events_.CheckPart({3, 1, 0}), Fails(kInvalid, "BAD_RANK"));
  events_.Seal({0, 1}, 3);
  EXPECT_TRUE(events_.AllSealed(3));
}

}  // namespace
}  // namespace rowhouse::server
