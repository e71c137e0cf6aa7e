#include "client/examples/ngram_lm/recipe.h"

#include "gtest/gtest.h"
#include "rowhouse/ngram_schedule.h"

namespace rowhouse::ngram_lm {
namespace {

TEST(RecipeTest, TheDenseRateWarmsUpStaysAndFalls) {
  Recipe recipe;
  recipe.learning_rate = 8;
  recipe.warmup_step_count = 4;
  recipe.cooldown_start = 0.5;
  recipe.final_fraction = 0.25;
  const auto rate = [&](int64_t step) {
    return DenseLearningRate(recipe, step, 100);
  };
  EXPECT_EQ(rate(0), 2);
  EXPECT_EQ(rate(3), 8);
  EXPECT_EQ(rate(50), 8);
  EXPECT_EQ(rate(75), 5);
  EXPECT_EQ(rate(100), 2);
}

TEST(RecipeTest, EventsComeEveryTwoStepsThenEveryFour) {
  const client::RowAdamSchedule schedule(NgramSchedule({}, 100));
  // 28 of 100 steps, a multiple of 4.
  EXPECT_EQ(schedule.CycleEnd(0), 1);
  EXPECT_EQ(schedule.CycleEnd(26), 27);
  EXPECT_EQ(schedule.CycleEnd(28), 31);
  EXPECT_EQ(schedule.Beta2(27), 0.95);
  EXPECT_EQ(schedule.Beta2(28), 0.95 * 0.95);
}

TEST(RecipeTest, TheRowRateFallsAsTheDenseRateDoes) {
  const Recipe recipe;
  const client::RowAdamSchedule schedule(NgramSchedule(recipe, 1000));
  for (const int64_t step : {20, 300, 301, 650, 999}) {
    EXPECT_NEAR(schedule.BaseLearningRate(step) / recipe.row_learning_rate,
                DenseLearningRate(recipe, step, 1000) / recipe.learning_rate,
                1e-12);
  }
}

TEST(RecipeTest, RunsOfAFewStepsHaveASchedule) {
  for (int64_t step_count = 1; step_count < 6; ++step_count) {
    const client::RowAdamSchedule schedule(NgramSchedule({}, step_count));
    EXPECT_GT(schedule.BaseLearningRate(step_count - 1), 0);
    EXPECT_GT(DenseLearningRate({}, step_count - 1, step_count), 0);
  }
}

}  // namespace
}  // namespace rowhouse::ngram_lm
