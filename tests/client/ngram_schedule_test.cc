#include "rowhouse/ngram_schedule.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::client {
namespace {

TEST(RowAdamScheduleTest, EventsFollowOddStepsThenEveryFourth) {
  const RowAdamSchedule schedule;
  std::vector<int64_t> steps;
  for (int64_t step = 328; step < 345; ++step) {
    if (schedule.IsUpdate(step)) steps.push_back(step);
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(329, 331, 333, 335, 339, 343));
}

TEST(RowAdamScheduleTest, ARunOf1194StepsHas382Events) {
  const RowAdamSchedule schedule;
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 1194; ++step) {
    if (schedule.IsUpdate(step)) steps.push_back(step);
  }
  ASSERT_EQ(steps.size(), 382);
  EXPECT_EQ(steps[168], 339);  // Event 169.
  EXPECT_EQ(steps.back(), 1191);
}

TEST(RowAdamScheduleTest, ACycleEndsWithItsUpdate) {
  const RowAdamSchedule schedule;
  EXPECT_EQ(schedule.CycleEnd(0), 1);
  EXPECT_EQ(schedule.CycleEnd(1), 1);
  EXPECT_EQ(schedule.CycleEnd(336), 339);
}

TEST(RowAdamScheduleTest, TheRateFollowsStagesAndFalls) {
  const RowAdamSchedule schedule;
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(0), 0.008);
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(233), 0.008);
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(234), 0.008);
  // Half way down, in the third stage: (1.73 + 0.30) / 2.
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(704), 0.008 * 1.015);
  // Past the end of the fall.
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(1174), 0.008 * 0.30);
  EXPECT_DOUBLE_EQ(schedule.BaseLearningRate(1193), 0.008 * 0.30);
}

TEST(RowAdamScheduleTest, StagesBeginAtTheEndOfTheLast) {
  const RowAdamSchedule schedule;
  EXPECT_NEAR(schedule.BaseLearningRate(320) / 0.008,
              1.52 * (1 - 86.0 / 940) + 0.30 * 86 / 940, 1e-12);
  EXPECT_NEAR(schedule.BaseLearningRate(319) / 0.008,
              1 - 85.0 / 940 + 0.30 * 85 / 940, 1e-12);
}

TEST(RowAdamScheduleTest, TheFirstEventsScalars) {
  const RowAdamScalars scalars = RowAdamSchedule().Scalars(1, 1);
  EXPECT_DOUBLE_EQ(scalars.step_size, 0.56 * std::sqrt(1 - 0.95));
  EXPECT_DOUBLE_EQ(scalars.decay, 0.56 * 0.56 * 0.025);
  EXPECT_EQ(scalars.beta2, 0.95);
  EXPECT_EQ(scalars.eps, 1e-10);
  EXPECT_EQ(scalars.gradient_scale, 1);
}

TEST(RowAdamScheduleTest, PeriodFourSquaresBeta2AndDoublesTheDecay) {
  const RowAdamSchedule schedule;
  EXPECT_EQ(schedule.Scalars(335, 168).beta2, 0.95);
  const RowAdamScalars scalars = schedule.Scalars(339, 169);
  EXPECT_EQ(scalars.beta2, 0.9025);
  const double rate = schedule.BaseLearningRate(339) * 70;
  EXPECT_DOUBLE_EQ(scalars.decay, rate * rate * 0.005 * 10);
  EXPECT_DOUBLE_EQ(scalars.step_size,
                   rate * std::sqrt(1 - std::pow(0.9025, 169)));
}

}  // namespace
}  // namespace rowhouse::client
