#include "client/examples/ngram_lm/context_model.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::ngram_lm {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

std::vector<float> Forward(const ContextModel& model,
                           const std::vector<float>& embeddings,
                           const std::vector<float>& ngram) {
  std::vector<float> hidden(embeddings.size(), -1);
  model.Forward(embeddings, ngram, hidden);
  return hidden;
}

TEST(ContextModelTest, AnAverageForgetsAtItsRate) {
  // Width 1; the sign is whichever it is.
  const ContextModel model(1, {{.memory = 0.5F, .weight = 4}}, 1);
  const std::vector<float> hidden =
      Forward(model, {1, 0, 0, 1}, {10, 20, 30, 40});
  const float sign = hidden[0] > 10 ? 1 : -1;
  EXPECT_THAT(hidden, ElementsAre(10 + sign * 2, 20 + sign * 1,
                                  30 + sign * 0.5F, 40 + sign * 2.25F));
}

TEST(ContextModelTest, WithoutAveragesOnlyTheNgramRowsAreSeen) {
  const ContextModel model(2, {}, 1);
  EXPECT_THAT(Forward(model, {1, 2, 3, 4}, {5, 6, 7, 8}),
              ElementsAre(5, 6, 7, 8));
}

TEST(ContextModelTest, EveryAverageHasSignsOfItsOwn) {
  constexpr int64_t kDim = 64;
  const std::vector<float> ones(kDim, 1);
  const std::vector<float> zeros(kDim, 0);
  const ContextModel both(kDim, {{0, 1}, {0, 1}}, 1);
  const std::vector<float> sums = Forward(both, ones, zeros);
  // Alike they would be 2 or -2 each, and 0 if opposite.
  EXPECT_THAT(sums, ::testing::Contains(FloatEq(0)));
  EXPECT_THAT(sums, ::testing::Contains(FloatEq(2)));
  EXPECT_THAT(sums, ::testing::Contains(FloatEq(-2)));
  EXPECT_EQ(sums,
            Forward(ContextModel(kDim, {{0, 1}, {0, 1}}, 1), ones, zeros));
}

// Forward is linear, so its gradient is its transpose:
// <g, Forward(e, 0)> == <Backward(g), e> for all g and e.
TEST(ContextModelTest, BackwardIsTheTransposeOfForward) {
  constexpr int64_t kDim = 5;
  constexpr size_t kSize = 7 * kDim;
  const ContextModel model(kDim, {{0, 1.5F}, {0.5F, 2}, {0.9F, -3}}, 2);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int i = 0; i < 20; ++i) {
    std::vector<float> embeddings(kSize);
    std::vector<float> gradient(kSize);
    for (float& value : embeddings) value = uniform(random);
    for (float& value : gradient) value = uniform(random);
    const std::vector<float> hidden =
        Forward(model, embeddings, std::vector<float>(kSize, 0));
    std::vector<float> back(kSize, NAN);
    model.Backward(gradient, back);
    double ahead = 0;
    double behind = 0;
    for (size_t j = 0; j < kSize; ++j) {
      ahead += gradient[j] * hidden[j];
      behind += back[j] * embeddings[j];
    }
    EXPECT_NEAR(ahead, behind, 1e-5);
  }
}

TEST(ContextModelTest, AnEmptyBatchIsValid) {
  const ContextModel model(4, {{0.5F, 1}}, 1);
  EXPECT_TRUE(Forward(model, {}, {}).empty());
  model.Backward({}, {});
}

}  // namespace
}  // namespace rowhouse::ngram_lm
