#include "client/examples/ngram_lm/baselines.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rowhouse::ngram_lm {
namespace {

TEST(UnigramTest, OneIsAddedToEveryCount) {
  const std::vector<int32_t> tokens = {1, 1, 2};
  const Unigram model(tokens, 4);
  EXPECT_DOUBLE_EQ(model.Probability(0), 1.0 / 7);
  EXPECT_DOUBLE_EQ(model.Probability(1), 3.0 / 7);
  EXPECT_DOUBLE_EQ(model.Probability(2), 2.0 / 7);
}

// "0 1 0 1 2": trigrams 010, 101, 012, each once. Words before the bigrams:
// 10 has {0}, 01 has {1}, 12 has {0}; before the words: 0 {1}, 1 {0}, 2 {1}.
TEST(KneserNeyTest, ATinyTextGivesTheNumbersWorkedOutByHand) {
  const std::vector<int32_t> tokens = {0, 1, 0, 1, 2};
  const KneserNeyTrigram model(tokens, 4);
  // There are only singletons, so no order has a discount of its own: 1/2.
  for (int order = 1; order <= 3; ++order) {
    EXPECT_EQ(model.Discount(order, 1), 0.5);
    EXPECT_EQ(model.Discount(order, 7), 0.5);
  }
  // Unigrams: (1 - 0.5) / 3 + 0.5 * 3 / 3 * 1/4 where seen, else 1/8.
  const double seen = 0.5 / 3 + 0.125;
  EXPECT_DOUBLE_EQ(model.Probability({}, 0), seen);
  EXPECT_DOUBLE_EQ(model.Probability({}, 3), 0.125);
  // After 1 come 0 and 2, one predecessor each: 0.5 / 2 + 0.5 * 2 / 2 * P1.
  const std::vector<int32_t> one = {1};
  EXPECT_DOUBLE_EQ(model.Probability(one, 2), 0.25 + 0.5 * seen);
  EXPECT_DOUBLE_EQ(model.Probability(one, 3), 0.5 * 0.125);
  // After 0 1 come 0 and 2, once each.
  const std::vector<int32_t> zero_one = {0, 1};
  EXPECT_DOUBLE_EQ(model.Probability(zero_one, 2),
                   0.25 + 0.5 * (0.25 + 0.5 * seen));
  // 2 1 was never seen: what comes after 1 decides. Older words do not count.
  const std::vector<int32_t> two_one = {0, 2, 1};
  EXPECT_DOUBLE_EQ(model.Probability(two_one, 2), 0.25 + 0.5 * seen);
}

// Trigrams of counts 1, 2, 3 and 4, so that every discount has its formula.
TEST(KneserNeyTest, DiscountsComeFromTheCountsOfCounts) {
  std::vector<int32_t> tokens;
  int32_t next = 0;
  const auto repeat = [&](int ngrams, int times) {
    for (int i = 0; i < ngrams; ++i, next += 3) {
      for (int j = 0; j < times; ++j) {
        // The fillers make every other trigram a single one.
        tokens.insert(tokens.end(), {next, next + 1, next + 2, 1000 + 7 * j,
                                     2000 + next * 5 + j});
      }
    }
  };
  repeat(8, 4);
  repeat(9, 3);
  repeat(10, 2);
  const KneserNeyTrigram model(tokens, 5000);
  // Each repeated trigram is one of count `times`; all that touch a filler are
  // of count 1: five trigrams begin in a group of five, four of them singly,
  // but the last group lacks two.
  const double n1 = 4.0 * (8 * 4 + 9 * 3 + 10 * 2) - 2;
  const double n2 = 10;
  const double n3 = 9;
  const double n4 = 8;
  const double y = n1 / (n1 + 2 * n2);
  EXPECT_DOUBLE_EQ(model.Discount(3, 1), 1 - 2 * y * n2 / n1);
  EXPECT_DOUBLE_EQ(model.Discount(3, 2), 2 - 3 * y * n3 / n2);
  EXPECT_DOUBLE_EQ(model.Discount(3, 3), 3 - 4 * y * n4 / n3);
  EXPECT_DOUBLE_EQ(model.Discount(3, 100), model.Discount(3, 3));
}

// A text in which frequent words follow each other often.
std::vector<int32_t> RandomText(size_t size, int32_t vocabulary_size) {
  std::mt19937 random(7);
  std::geometric_distribution<int32_t> word(0.1);
  std::vector<int32_t> tokens;
  while (tokens.size() < size) {
    const int32_t token = word(random);
    if (token < vocabulary_size) tokens.push_back(token);
  }
  return tokens;
}

void ExpectSumOfOne(const KneserNeyTrigram& model,
                    const std::vector<int32_t>& history,
                    int32_t vocabulary_size) {
  double sum = 0;
  for (int32_t token = 0; token < vocabulary_size; ++token) {
    const double probability = model.Probability(history, token);
    EXPECT_GT(probability, 0);
    sum += probability;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(KneserNeyTest, ProbabilitiesSumToOneAfterAnyHistory) {
  constexpr int32_t kVocabularySize = 60;
  const std::vector<int32_t> tokens = RandomText(3000, kVocabularySize - 5);
  const KneserNeyTrigram model(tokens, kVocabularySize);
  for (const std::vector<int32_t>& history : {std::vector<int32_t>{},
                                              {0},
                                              {59},
                                              {0, 0},
                                              {0, 1},
                                              {40, 0},
                                              {59, 0},
                                              {0, 59},
                                              {59, 58},
                                              {1, 2, 3}}) {
    ExpectSumOfOne(model, history, kVocabularySize);
  }
  for (size_t t = 2; t < 100; ++t) {
    ExpectSumOfOne(model, {tokens[t - 2], tokens[t - 1]}, kVocabularySize);
  }
}

TEST(KneserNeyTest, TextsOfAnySizeGiveProbabilities) {
  for (size_t size = 0; size < 8; ++size) {
    const std::vector<int32_t> tokens = RandomText(size, 5);
    const KneserNeyTrigram model(tokens, 5);
    ExpectSumOfOne(model, {}, 5);
    ExpectSumOfOne(model, {0, 1}, 5);
  }
}

TEST(MeanLossTest, ScoresWhatFollowsTheFirstTokensOfEachBlock) {
  const std::vector<std::vector<int32_t>> blocks = {{5, 6, 7}, {8}, {1, 2}};
  int64_t calls = 0;
  const double loss =
      MeanLoss(blocks, 1, [&](std::span<const int32_t> history, int32_t token) {
        ++calls;
        EXPECT_EQ(history.back(), token - 1);
        return std::exp(-static_cast<double>(token));
      });
  EXPECT_EQ(calls, 3);
  EXPECT_DOUBLE_EQ(loss, (6.0 + 7.0 + 2.0) / 3);
  EXPECT_EQ(MeanLoss({}, 1, nullptr), 0);
}

}  // namespace
}  // namespace rowhouse::ngram_lm
