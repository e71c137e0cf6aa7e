// What an n-gram embedding tells its observer.

#include <vector>

#include "tests/client/ngram_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::FieldsAre;

// What the calling thread was told; stage, event and rows.
class NgramObserverTest : public NgramTest {
 protected:
  struct Told {
    Stage stage;
    int64_t event;
    int64_t row_count;
  };

  void SetUp() override {
    MakeTable(NgramSpec());
    trainer_ = Join();
    embedding_ = MakeEmbedding(
        *trainer_, {.observer = [this](const Span& span) { Note(span); }});
  }

  void Note(const Span& span) {
    EXPECT_LE(span.begin, span.end);
    EXPECT_EQ(span.shard, -1);
    if (!spans_.empty()) {
      EXPECT_LE(spans_.back().end, span.begin);
    }
    spans_.push_back(span);
  }

  std::vector<Told> Take() {
    std::vector<Told> told;
    for (const Span& span : spans_) {
      told.push_back({span.stage, span.event, span.row_count});
    }
    spans_.clear();
    return told;
  }

  const std::vector<TokenList> steps_ = {{1, 2}, {3}};
  const std::vector<TokenList> next_ = {{4}, {}};
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<NgramEmbedding> embedding_;
  std::vector<Span> spans_;
};

TEST_F(NgramObserverTest, ACyclesWorkIsToldInItsOrder) {
  const auto want = std::ssize(*embedding_->WantList(Views(steps_)));
  const auto next = std::ssize(*embedding_->WantList(Views(next_)));
  ASSERT_THAT(embedding_->StartCycle(0, Views(steps_)), IsOk());
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kWantList, 1, want),
                                  FieldsAre(Stage::kPullWait, 1, want)));
  ASSERT_THAT(embedding_->PrefetchNextCycle(Views(next_)), IsOk());
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kWantList, 2, next)));
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  ASSERT_THAT(Step(*embedding_, steps_[1], 1), IsOk());
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kEmbed, 1, 2),
                                  FieldsAre(Stage::kAccumulate, 1, 2),
                                  FieldsAre(Stage::kEmbed, 1, 1),
                                  FieldsAre(Stage::kAccumulate, 1, 1)));
  ASSERT_THAT(embedding_->FinishCycle(Scalars()), IsOk());
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kSum, 1, want)));
  ASSERT_THAT(embedding_->StartCycle(2, Views(next_)), IsOk());
  // The want list was made when it was prefetched.
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kPullWait, 2, next)));
}

TEST_F(NgramObserverTest, OtherTokensOfTheSameRowsMakeTheirWantListAnew) {
  const std::vector<TokenList> turned = {next_[1], next_[0]};
  const auto next = std::ssize(*embedding_->WantList(Views(next_)));
  ASSERT_THAT(embedding_->StartCycle(0, Views(steps_)), IsOk());
  ASSERT_THAT(embedding_->PrefetchNextCycle(Views(next_)), IsOk());
  ASSERT_THAT(Step(*embedding_, steps_[0], 1), IsOk());
  ASSERT_THAT(Step(*embedding_, steps_[1], 1), IsOk());
  ASSERT_THAT(embedding_->FinishCycle(Scalars()), IsOk());
  Take();
  ASSERT_THAT(embedding_->StartCycle(2, Views(turned)), IsOk());
  EXPECT_THAT(Take(), ElementsAre(FieldsAre(Stage::kWantList, 2, next),
                                  FieldsAre(Stage::kPullWait, 2, next)));
  EXPECT_THAT(Embed(*embedding_, turned[1]), IsOk());
}

TEST_F(NgramObserverTest, WhatFailsIsNotTold) {
  ASSERT_THAT(embedding_->StartCycle(0, Views(steps_)), IsOk());
  Take();
  EXPECT_THAT(Embed(*embedding_, {9, 9}),
              Fails(absl::StatusCode::kNotFound, "ROW_NOT_CACHED"));
  EXPECT_THAT(Take(), ElementsAre());
}

}  // namespace
}  // namespace rowhouse::client
