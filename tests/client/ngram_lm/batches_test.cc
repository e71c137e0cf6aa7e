#include "client/examples/ngram_lm/batches.h"

#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::StatusIs;

std::vector<int32_t> Text(size_t size) {
  std::vector<int32_t> text(size);
  std::iota(text.begin(), text.end(), 0);
  return text;
}

constexpr BatchOptions kSmall = {.trainer_count = 2,
                                 .token_count = 6,
                                 .piece_token_count = 3,
                                 .epochs = 1,
                                 .seed = 1};

TEST(BatchesTest, AnEpochReadsEveryPieceOnceAndTargetsFollowTokens) {
  const std::vector<int32_t> text = Text(12 * 4 + 1);
  const auto batches = Batches::Make(text, kSmall);
  ASSERT_TRUE(batches.ok());
  ASSERT_EQ(batches->step_count(), 4);
  std::set<int32_t> seen;
  for (int64_t step = 0; step < 4; ++step) {
    for (int32_t rank = 0; rank < 2; ++rank) {
      const Batch batch = batches->Get(step, rank);
      ASSERT_EQ(batch.tokens.size(), 6U);
      ASSERT_EQ(batch.targets.size(), 6U);
      for (size_t t = 0; t < 6; ++t) {
        EXPECT_EQ(batch.targets[t], batch.tokens[t] + 1);
        EXPECT_EQ(batch.tokens[t],
                  batch.tokens[t / 3 * 3] + static_cast<int32_t>(t % 3));
        EXPECT_TRUE(seen.insert(batch.tokens[t]).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), 48U);
}

TEST(BatchesTest, TheOrderIsTheSeedsAndAnotherInEveryEpoch) {
  const std::vector<int32_t> text = Text(12 * 4 + 1);
  BatchOptions options = kSmall;
  options.epochs = 2;
  const auto batches = Batches::Make(text, options);
  const auto same = Batches::Make(text, options);
  options.seed = 2;
  const auto other = Batches::Make(text, options);
  ASSERT_TRUE(batches.ok() && same.ok() && other.ok());
  ASSERT_EQ(batches->step_count(), 8);
  std::vector<std::vector<int32_t>> order;
  for (int64_t step = 0; step < 8; ++step) {
    order.push_back(batches->Get(step, 1).tokens);
    EXPECT_EQ(order.back(), same->Get(step, 1).tokens);
  }
  EXPECT_NE(std::vector(order.begin(), order.begin() + 4),
            std::vector(order.begin() + 4, order.end()));
  EXPECT_NE(order[0], other->Get(0, 1).tokens);
}

TEST(BatchesTest, WhatIsLeftOfAStepIsNotRead) {
  const std::vector<int32_t> text = Text(12 * 4);  // The last has no target.
  const auto batches = Batches::Make(text, kSmall);
  ASSERT_TRUE(batches.ok());
  EXPECT_EQ(batches->step_count(), 3);
}

TEST(BatchesTest, TextsOfLessThanAStepAndBrokenPiecesAreRefused) {
  const std::vector<int32_t> text = Text(12);
  EXPECT_THAT(Batches::Make(text, kSmall),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "12 training tokens, 1 epochs; one step takes 12 and"));
  EXPECT_THAT(Batches::Make({}, kSmall),
              StatusIs(absl::StatusCode::kInvalidArgument, "0 training"));
  EXPECT_THAT(Batches::Make(text, {.token_count = 7, .piece_token_count = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "batches of 7 tokens in pieces of 3"));
  EXPECT_THAT(Batches::Make(text, {.trainer_count = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, "0 trainers"));
}

}  // namespace
}  // namespace rowhouse::ngram_lm
