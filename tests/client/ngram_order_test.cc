// Calls of an n-gram embedding out of their order.

#include <optional>
#include <vector>

#include "tests/client/ngram_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

MATCHER(IsOutOfOrder, "is FAILED_PRECONDITION OUT_OF_ORDER") {
  return ::testing::ExplainMatchResult(
      Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"), arg,
      result_listener);
}

class NgramOrderTest : public NgramTest {
 protected:
  void SetUp() override {
    MakeTable(NgramSpec());
    trainer_ = Join();
    embedding_ = MakeEmbedding(*trainer_);
  }

  // Steps 0 and 1.
  void StartCycle() {
    ASSERT_THAT(embedding_->StartCycle(0, Views(steps_)), IsOk());
  }

  const std::vector<TokenList> steps_ = {{1, 2, 3}, {3, 2, 1}};
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<NgramEmbedding> embedding_;
};

TEST_F(NgramOrderTest, NothingGoesBeforeACycleBegins) {
  EXPECT_THAT(Embed(*embedding_, steps_[0]), IsOutOfOrder());
  EXPECT_THAT(
      Accumulate(*embedding_, steps_[0], NgramOracle::Rows(3, {0, 0, 0, 0})),
      IsOutOfOrder());
  EXPECT_THAT(embedding_->PrefetchNextCycle(Views(steps_)), IsOutOfOrder());
  EXPECT_THAT(embedding_->FinishCycle(Scalars()), IsOutOfOrder());
  EXPECT_THAT(embedding_->DropCycle(), IsOutOfOrder());
  EXPECT_THAT(embedding_->RestoreAfterEvaluation(), IsOutOfOrder());
}

TEST_F(NgramOrderTest, ACycleBeginsOnce) {
  StartCycle();
  EXPECT_THAT(embedding_->StartCycle(0, Views(steps_)), IsOutOfOrder());
}

TEST_F(NgramOrderTest, ACycleNeedsAGradientToFinish) {
  StartCycle();
  EXPECT_THAT(embedding_->FinishCycle(Scalars()), IsOutOfOrder());
}

TEST_F(NgramOrderTest, ACycleTakesAGradientAStep) {
  StartCycle();
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  ASSERT_THAT(Step(*embedding_, steps_[1], 1), IsOk());
  EXPECT_THAT(Step(*embedding_, steps_[1], 1), IsOutOfOrder());
}

TEST_F(NgramOrderTest, TokensOfAnotherCycleAreNotInTheCache) {
  StartCycle();
  const TokenList others = {50256, 464, 2068, 7586, 21831};
  EXPECT_THAT(Embed(*embedding_, others),
              Fails(absl::StatusCode::kNotFound, "ROW_NOT_CACHED"));
}

TEST_F(NgramOrderTest, AnEvaluationTakesNoGradient) {
  StartCycle();
  ASSERT_THAT(embedding_->PullForEvaluation(Views(steps_)), IsOk());
  EXPECT_THAT(Step(*embedding_, steps_[0], 1), IsOutOfOrder());
  ASSERT_THAT(embedding_->RestoreAfterEvaluation(), IsOk());
  EXPECT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  EXPECT_THAT(embedding_->RestoreAfterEvaluation(), IsOutOfOrder());
}

TEST_F(NgramOrderTest,
       APrefetchedCycleWaitsUntilTheEvaluationGivesTheCacheBack) {
  StartCycle();
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  ASSERT_THAT(embedding_->PrefetchNextCycle(Views(steps_)), IsOk());
  EXPECT_THAT(embedding_->PrefetchNextCycle(Views(steps_)), IsOutOfOrder());
  ASSERT_THAT(embedding_->FinishCycle(Scalars()), IsOk());
  ASSERT_THAT(embedding_->PullForEvaluation(Views(steps_)), IsOk());
  EXPECT_THAT(embedding_->StartCycle(2, Views(steps_)), IsOutOfOrder());
  ASSERT_THAT(embedding_->RestoreAfterEvaluation(), IsOk());
  EXPECT_THAT(embedding_->StartCycle(2, Views(steps_)), IsOk());
}

TEST_F(NgramOrderTest, OtherStepsThanWerePrefetchedAreRefused) {
  StartCycle();
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  ASSERT_THAT(embedding_->PrefetchNextCycle(Views(steps_)), IsOk());
  ASSERT_THAT(embedding_->FinishCycle(Scalars()), IsOk());
  const std::vector<TokenList> others = {{7, 8, 9}};
  EXPECT_THAT(embedding_->StartCycle(3, Views(others)), IsOutOfOrder());
  EXPECT_THAT(embedding_->StartCycle(2, Views(steps_)), IsOk());
}

TEST_F(NgramOrderTest, ACycleEndsWithItsEvent) {
  EXPECT_THAT(embedding_->StartCycle(1, Views(steps_)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted one that ends with step 1"));
}

TEST_F(NgramOrderTest, APredecessorsSealedEventIsDecidedFirst) {
  ASSERT_THAT(trainer_->Seal(1), IsOk());
  const std::unique_ptr<Trainer> successor = Join();
  const auto embedding = MakeEmbedding(*successor);
  EXPECT_EQ(successor->next_event(), 2);
  EXPECT_THAT(embedding->StartCycle(2, Views(steps_)), IsOutOfOrder());
  ASSERT_THAT(successor->Commit(1, Scalars()), IsOk());
  EXPECT_THAT(embedding->StartCycle(2, Views(steps_)), IsOk());
}

TEST_F(NgramOrderTest, Rank0AloneDecides) {
  StartCycle();
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  EXPECT_THAT(embedding_->FinishCycle(),
              StatusIs(absl::StatusCode::kInvalidArgument, "no decision"));
  EXPECT_THAT(embedding_->FinishCycle(Scalars()), IsOk());
}

}  // namespace
}  // namespace rowhouse::client
