// Head calls: their phases, what they may and may not, and what they leave.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/head_fixture.h"

namespace rowhouse::testing {
namespace {

using absl::StatusCode;
using server::HeadPurpose;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(HeadTest, GivesStatisticsAndHiddenGradientOfZeroWeights) {
  StartWithSessions();
  const auto head = Open(Header(kRank0, 1, 0, 2));
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(RunPhases(**head), IsOk());
  std::vector<float> max(2), sums(2), targets(2), gradient(4, 9);
  ASSERT_THAT((*head)->ReadStatistics(0, {max, sums, targets}), IsOk());
  EXPECT_THAT(max, ElementsAre(0, 0));
  EXPECT_THAT(sums, ElementsAre(4, 4));
  EXPECT_THAT(targets, ElementsAre(0, 0));
  ASSERT_THAT((*head)->ReadHiddenGradient(0, gradient), IsOk());
  EXPECT_THAT(gradient, ElementsAre(0, 0, 0, 0));
}

// With zero weights p = (1, -3, 1, 1) / 4, so AdamW's first step, lr 1, moves
// each weight by one against its gradient's sign.
TEST_F(HeadTest, TheEventAppliesTheWeightGradient) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
  EXPECT_THAT(Row(0), ElementsAre(-1, -1));
  EXPECT_THAT(Row(1), ElementsAre(1, 1));
  const auto state = shard_->GetEventState();
  EXPECT_EQ(state->applied_events[0].report.entry_count, 1);
}

// From nothing to all of both calls: a block of two rows takes 544 bytes with
// what else is kept, a whole call 768.
TEST_F(HeadTest, TheRoomForLogitsChangesNoBit) {
  limits_.head_blocks = {1, 2};
  std::vector<uint64_t> sums;
  for (const int64_t budget : {0, 543, 544, 768, 768 + 544, 1 << 20}) {
    limits_.logits_budget_bytes = budget;
    StartWithSessions();
    ASSERT_THAT(Run(Header(kRank0, 1), 1), IsOk());
    ASSERT_THAT(Run(Header(kRank1, 1), -2), IsOk());
    ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 1));
    ASSERT_THAT(Run(Header(kRank1, 2), 3), IsOk());
    ASSERT_NO_FATAL_FAILURE(Apply(2, 0, 1));
    const auto digest = shard_->Digest();
    ASSERT_THAT(digest, IsOk());
    sums.push_back(digest->row_sum);
  }
  EXPECT_THAT(sums, Each(sums[0]));
}

TEST_F(HeadTest, EvaluationsAndFrozenWeightsStageNothing) {
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.purpose = HeadPurpose::kFrozen;
  ASSERT_THAT(Run(header), IsOk());
  header.purpose = HeadPurpose::kEvaluation;
  header.trainer = std::nullopt;
  const auto head = Open(header);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(Land(**head), IsOk());
  ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  EXPECT_THAT(Row(0), ElementsAre(0, 0));
}

TEST_F(HeadTest, WithoutTokensIsAPartAllTheSame) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1, 0, 0)), IsOk());
  EXPECT_THAT(shard_->Seal(kRank0, 1, 0),
              Fails(StatusCode::kInvalidArgument, "BAD_COUNT"));
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
  EXPECT_THAT(Row(1), ElementsAre(0, 0));
}

TEST_F(HeadTest, WaitsForTheEventBeforeItsOwn) {
  StartWithSessions();
  const auto head = Open(Header(kRank0, 2));
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(Land(**head), IsOk());
  auto computed = StartStatistics(**head);
  EXPECT_EQ(shard_->GetEventState()->event, 0);  // The lane has passed it.
  EXPECT_FALSE(computed.IsDone());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  const auto event = computed.Wait();
  ASSERT_THAT(event, IsOk());
  EXPECT_EQ(*event, 1);
}

TEST_F(HeadTest, ItsEventMayPassBetweenThePhases) {
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.purpose = HeadPurpose::kFrozen;
  const auto head = Open(header);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(Land(**head), IsOk());
  ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
  ASSERT_THAT(LandMerged(**head), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  EXPECT_THAT(StartFinish(**head).Wait(),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(Open(header),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(Open(Header(kRank0, 4)),
              Fails(StatusCode::kFailedPrecondition, "EVENT_AHEAD"));
}

TEST_F(HeadTest, ARepeatGetsTheGradientAgainAndCountsOnce) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  auto again = Open(Header(kRank0, 1));
  ASSERT_THAT(again, IsOk());
  const auto receipt = RunPhases(**again);
  ASSERT_THAT(receipt, IsOk());
  EXPECT_TRUE(receipt->duplicate);
  std::vector<float> gradient(2, 9);
  ASSERT_THAT((*again)->ReadHiddenGradient(0, gradient), IsOk());
  EXPECT_THAT(gradient, ElementsAre(0, 0));
  EXPECT_EQ(shard_->GetEventState()->open_events[0].contributions[0].part_count,
            1);
  const auto other = Open(Header(kRank0, 1));
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(Open(Header(kRank0, 1)),
              Fails(StatusCode::kResourceExhausted, "HEAD_CALLS_OPEN"));
  // Another type of hidden states is other content, whatever the bytes.
  ASSERT_THAT(Run(Header(kRank0, 1, 1, 0)), IsOk());
  server::HeadHeader bf16 = Header(kRank0, 1, 1, 0);
  bf16.hidden_dtype = kernels::DType::kBf16;
  *again = nullptr;
  ASSERT_EQ(shard_->GetEventState()->event, 0);  // The lane has freed it.
  EXPECT_THAT(Run(bf16), Fails(StatusCode::kAlreadyExists, "PART_DIFFERS"));
}

TEST_F(HeadTest, ARepeatWithOtherContentIsRefused) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  EXPECT_THAT(Run(Header(kRank0, 1), 2),
              Fails(StatusCode::kAlreadyExists, "PART_DIFFERS"));
  EXPECT_THAT(Run(Header(kRank0, 1), 1, 2),
              Fails(StatusCode::kAlreadyExists, "PART_DIFFERS"));
  PartToPush push = OneRow(kRank0, 1, 0, 0);
  EXPECT_THAT(shard_->Push(push),
              Fails(StatusCode::kAlreadyExists, "PART_DIFFERS"));
}

TEST_F(HeadTest, TokensOfATrainerAreBounded) {
  StartWithSessions();
  EXPECT_THAT(Open(Header(kRank0, 1, 0, 11)),
              Fails(StatusCode::kInvalidArgument, "BAD_COUNT"));
  EXPECT_THAT(Open(Header(kRank0, 1, 0, -1)),
              Fails(StatusCode::kInvalidArgument, "BAD_COUNT"));
  const auto open = Open(Header(kRank0, 1, 0, 6));
  ASSERT_THAT(open, IsOk());
  EXPECT_THAT(Open(Header(kRank0, 1, 1, 5)),
              Fails(StatusCode::kResourceExhausted, "TOKENS_FULL"));
  ASSERT_THAT(RunPhases(**open), IsOk());
  EXPECT_THAT(Open(Header(kRank0, 1, 1, 5)),
              Fails(StatusCode::kResourceExhausted, "TOKENS_FULL"));
  EXPECT_THAT(Open(Header(kRank0, 1, 1, 4)), IsOk());
  EXPECT_THAT(Open(Header(kRank0, 2, 0, 10)), IsOk());
  EXPECT_THAT(Open(Header(kRank1, 1, 0, 10)), IsOk());
}

TEST_F(HeadTest, BadInputsAreNamedAndStageNothing) {
  StartWithSessions();
  const auto head = Open(Header(kRank0, 1, 0, 2));
  ASSERT_THAT(head, IsOk());
  const std::vector<int64_t> out = {1, 4};
  const auto bad = (*head)->AppendInputs(0, out, Floats({1, 1, 1, 1}));
  EXPECT_THAT(bad, Fails(StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(std::string(bad.message()),
              HasSubstr("target of token 1 is 4; it must be in [0, 4)"));
  EXPECT_THAT(StartStatistics(**head).Wait(),
              Fails(StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
  const std::vector<int64_t> target = {0};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto second = Open(Header(kRank0, 1, 0, 2));
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT((*second)->AppendInputs(1, target, Floats({1, 1})),
              Fails(StatusCode::kInvalidArgument, "BAD_OFFSET"));
  const auto third = Open(Header(kRank0, 1, 0, 2));
  ASSERT_THAT(third, IsOk());
  EXPECT_THAT((*third)->AppendInputs(0, target, Floats({1, nan})),
              Fails(StatusCode::kInvalidArgument, "NOT_FINITE"));
  const auto fourth = Open(Header(kRank0, 1, 0, 2));
  ASSERT_THAT(fourth, IsOk());
  EXPECT_THAT((*fourth)->AppendInputs(0, target, Floats({1})),
              Fails(StatusCode::kInvalidArgument, "BAD_SHAPE"));
  const auto fifth = Open(Header(kRank0, 1));
  ASSERT_THAT(fifth, IsOk());
  ASSERT_THAT(Land(**fifth), IsOk());
  ASSERT_THAT(StartStatistics(**fifth).Wait(), IsOk());
  EXPECT_THAT(LandMerged(**fifth, nan),
              Fails(StatusCode::kInvalidArgument, "NOT_FINITE"));
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  EXPECT_THAT(Row(0), ElementsAre(0, 0));
}

TEST_F(HeadTest, MergedStatisticsThatGiveNoFiniteGradientAreRefused) {
  StartWithSessions();
  struct Merged {
    float max, sum, upstream;
    const char* reason;
    const char* message;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Merged& bad :
       {Merged{0, 0, 1, "NOT_FINITE",
               "exp_sums of token 0 is 0; it must be finite and above 0"},
        Merged{0, -4, 1, "NOT_FINITE", "exp_sums of token 0 is -4;"},
        Merged{infinity, 4, 1, "NOT_FINITE", "max_logits of token 0 is inf;"},
        Merged{0, infinity, 1, "NOT_FINITE", "exp_sums of token 0 is inf;"},
        Merged{0, 1e-45F, 1, "NOT_FINITE", "upstream_gradients / exp_sums of"},
        Merged{-1, 4, 1, "BAD_STATISTICS", "max_logits of token 0 is -1;"},
        Merged{0, 4, infinity, "NOT_FINITE",
               "upstream_gradients of token 0 is inf; it must be finite"}}) {
    const auto head = Open(Header(kRank0, 1));
    ASSERT_THAT(head, IsOk());
    ASSERT_THAT(Land(**head), IsOk());
    ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
    const std::vector<float> max = {bad.max}, sum = {bad.sum},
                             upstream = {bad.upstream};
    const absl::Status status = (*head)->AppendMerged({0, max, sum, upstream});
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, bad.reason));
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  EXPECT_THAT(Row(1), ElementsAre(0, 0));
}

TEST_F(HeadTest, AnIgnoredTokenHasNoGradientWhateverItsUpstream) {
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.ignore_index = 1;  // The target of every token here.
  const auto head = Open(header);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(RunPhases(**head, /*h=*/1, /*upstream=*/5), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
  EXPECT_THAT(Row(0), ElementsAre(0, 0));
  EXPECT_THAT(Row(1), ElementsAre(0, 0));
}

TEST_F(HeadTest, ASparseTableHasNoHead) {
  spec_.dense = std::nullopt;
  StartWithSessions();
  EXPECT_THAT(Open(Header(kRank0, 1)),
              Fails(StatusCode::kFailedPrecondition, "TABLE_KIND"));
}

TEST_F(HeadTest, TrainingNeedsATrainerAndAnUnsealedContribution) {
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.trainer = std::nullopt;
  EXPECT_THAT(Open(header), Fails(StatusCode::kInvalidArgument, "MALFORMED"));
  const auto open = Open(Header(kRank0, 1));
  ASSERT_THAT(open, IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  EXPECT_THAT(RunPhases(**open),
              Fails(StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(Open(Header(kRank0, 1)),
              Fails(StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(Open(Header(kRank0, 1, 8)),
              Fails(StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_THAT(Open(Header(kRank1, 1, 8)),
              Fails(StatusCode::kResourceExhausted, "PARTS_FULL"));
}

TEST_F(HeadTest, ARevokedCallIsToldAndFreesItsMemory) {
  StartWithSessions();
  const auto fenced = Open(Header(kRank0, 1));
  const auto superseded = Open(Header(kRank1, 1));
  ASSERT_THAT(fenced, IsOk());
  ASSERT_THAT(superseded, IsOk());
  Pending<absl::Status> fence;
  Pending<absl::Status> supersede;
  (*fenced)->set_on_revoked(fence.Callback());
  (*superseded)->set_on_revoked(supersede.Callback());
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(fence.Wait(), Fails(StatusCode::kAborted, "FENCED"));
  EXPECT_THAT(Land(**fenced), Fails(StatusCode::kAborted, "FENCED"));
  ASSERT_THAT(Open(Header(kRank1, 1)), IsOk());
  EXPECT_THAT(supersede.Wait(), Fails(StatusCode::kAborted, "SUPERSEDED"));
  EXPECT_THAT(StartStatistics(**superseded).Wait(),
              Fails(StatusCode::kAborted, "SUPERSEDED"));
}

TEST_F(HeadTest, ACallThatIsStillReadWhenItsEventIsAppliedEnds) {
  StartWithSessions();
  const auto head = Open(Header(kRank0, 1));
  ASSERT_THAT(head, IsOk());
  Pending<absl::Status> revoked;
  (*head)->set_on_revoked(revoked.Callback());
  ASSERT_THAT(RunPhases(**head), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
  EXPECT_THAT(revoked.Wait(),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
  std::vector<float> gradient(2);
  EXPECT_THAT((*head)->ReadHiddenGradient(0, gradient),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(Row(1), ElementsAre(1, 1));
}

TEST_F(HeadTest, AStalledEvaluationOfAPastEventMakesRoom) {
  limits_.max_anonymous_head_call_count = 1;
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.trainer = std::nullopt;
  header.purpose = HeadPurpose::kEvaluation;
  const auto computed = Open(header);
  ASSERT_THAT(computed, IsOk());
  Pending<absl::Status> revoked;
  (*computed)->set_on_revoked(revoked.Callback());
  ASSERT_THAT(Land(**computed), IsOk());
  ASSERT_THAT(StartStatistics(**computed).Wait(), IsOk());
  EXPECT_THAT(Open(header),
              Fails(StatusCode::kResourceExhausted, "HEAD_CALLS_OPEN"));
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  // It may still be read,
  std::vector<float> max(1), sums(1), targets(1);
  EXPECT_THAT((*computed)->ReadStatistics(0, {max, sums, targets}), IsOk());
  // until another one needs the place.
  header.event = 2;
  const auto next = Open(header);
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(revoked.Wait(), Fails(StatusCode::kAborted, "SUPERSEDED"));
}

TEST_F(HeadTest, WhatHasNotBegunToComputeEndsWithItsEvent) {
  StartWithSessions();
  server::HeadHeader header = Header(kRank0, 1);
  header.purpose = HeadPurpose::kEvaluation;
  const auto head = Open(header);
  ASSERT_THAT(head, IsOk());
  Pending<absl::Status> revoked;
  (*head)->set_on_revoked(revoked.Callback());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
  EXPECT_THAT(revoked.Wait(),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(HeadTest, RowsAreImportedBeforeTheFirstHeadCallOnly) {
  StartWithSessions();
  const auto import = [&] {
    PendingCall<int64_t> imported;
    owned_->Import(0, 1, Floats({1, 2}), BlockingShard::NewCall(),
                   imported.Callback());
    return imported.Wait();
  };
  EXPECT_THAT(import(), IsOk());
  {
    const auto open = Open(Header(kRank0, 1));
    ASSERT_THAT(open, IsOk());
    EXPECT_THAT(import(),
                Fails(StatusCode::kFailedPrecondition, "IMPORT_LATE"));
  }
  EXPECT_THAT(import(), IsOk());
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  EXPECT_THAT(import(), Fails(StatusCode::kFailedPrecondition, "IMPORT_LATE"));
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  EXPECT_THAT(import(), IsOk());
}

TEST_F(HeadTest, AWeightGradientIsReportedOnlyOnceItIsFolded) {
  StartWithSessions();
  // Part 0 of rank 1 has its turn after that of rank 0.
  ASSERT_THAT(Run(Header(kRank1, 1)), IsOk());
  auto folded = StartWaitFolded(1, 1, 1);
  EXPECT_EQ(shard_->GetEventState()
                ->open_events[0]
                .contributions[0]
                .folded_part_count,
            0);
  EXPECT_FALSE(folded.IsDone());
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  const auto state = folded.Wait();
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->open_events[0].contributions[1].folded_part_count, 1);
  // Of an applied event all are.
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 1));
  EXPECT_THAT(StartWaitFolded(1, 1, 5).Wait(), IsOk());
}

TEST_F(HeadTest, ADiscardFoldsTheRestAgain) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1), 5), IsOk());
  ASSERT_THAT(Run(Header(kRank1, 1)), IsOk());
  ASSERT_THAT(StartWaitFolded(1, 1, 1).Wait(), IsOk());
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 1), IsOk());
  const auto statistics = shard_->GetEventStatistics(1);
  ASSERT_THAT(statistics, IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, AdamW()), IsOk());
  const auto discarded = shard_->Digest(1);

  // The same without the discarded part.
  ASSERT_NO_FATAL_FAILURE(StartWithSessions());
  ASSERT_THAT(Run(Header(kRank1, 1)), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 1));
  EXPECT_EQ(discarded->row_sum, shard_->Digest(1)->row_sum);
}

TEST_F(HeadTest, ASkippedEventDropsWhatWasFolded) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1), 5), IsOk());
  ASSERT_THAT(StartWaitFolded(1, 0, 1).Wait(), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  server::EventCommit skip;
  skip.sessions = {1, 1};
  skip.skip = true;
  ASSERT_THAT(shard_->Commit(kRank0, 1, skip), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(2, 0, 0));
  EXPECT_THAT(Row(1), ElementsAre(0, 0));
}

TEST_F(HeadTest, ACommitMustBeOfTheTablesKind) {
  StartWithSessions();
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  EXPECT_THAT(shard_->Commit(kRank0, 1, Commit()),
              Fails(StatusCode::kInvalidArgument, "BAD_COMMIT"));
  server::EventCommit bad = AdamW();
  bad.adamw->bias_correction1 = 0;
  EXPECT_THAT(shard_->Commit(kRank0, 1, bad),
              Fails(StatusCode::kInvalidArgument, "BAD_SCALAR"));
  EXPECT_THAT(shard_->Commit(kRank0, 1, AdamW()), IsOk());
}

TEST_F(HeadTest, StatisticsAreOfAllFoldedParts) {
  StartWithSessions();
  ASSERT_THAT(Run(Header(kRank0, 1)), IsOk());
  ASSERT_THAT(Run(Header(kRank1, 1)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 1), IsOk());
  const auto statistics = shard_->GetEventStatistics(1);
  ASSERT_THAT(statistics, IsOk());
  // Four rows and their biases; row sums of squares are 0.5 (3 times) and 4.5,
  // those of biases 0.25 and 2.25.
  EXPECT_EQ(statistics->row_count, 8);
  double sum = 0;
  for (int x = 1; x < kernels::GradientStatistics::kExponents; ++x) {
    sum += std::ldexp(static_cast<double>(statistics->significand_sums[x]),
                      x - 150);
  }
  EXPECT_EQ(sum, 3 * 0.5 + 4.5 + 3 * 0.25 + 2.25);
}

}  // namespace
}  // namespace rowhouse::testing
