#include "client/examples/ngram_lm/recipe.h"

#include <algorithm>
#include <cstdint>

namespace rowhouse::ngram_lm {
namespace {

int64_t Share(double share, int64_t step_count) {
  return static_cast<int64_t>(share * static_cast<double>(step_count));
}

}  // namespace

double DenseLearningRate(const Recipe& recipe, int64_t step,
                         int64_t step_count) {
  const int64_t start = Share(recipe.cooldown_start, step_count);
  double rate = recipe.learning_rate;
  if (step < recipe.warmup_step_count) {
    rate *= static_cast<double>(step + 1) /
            static_cast<double>(recipe.warmup_step_count);
  }
  if (step <= start) return rate;
  const double t = std::min(1.0, static_cast<double>(step - start) /
                                     static_cast<double>(step_count - start));
  return rate * ((1 - t) + recipe.final_fraction * t);
}

client::RowAdamScheduleOptions NgramSchedule(const Recipe& recipe,
                                             int64_t step_count) {
  client::RowAdamScheduleOptions options;
  options.base_learning_rate = recipe.row_learning_rate;
  options.learning_rate_multiplier = 1;
  options.stage_ends = {step_count};
  options.stage_multipliers = {1};
  options.cooldown_start_step = Share(recipe.cooldown_start, step_count);
  options.cooldown_step_count =
      std::max<int64_t>(step_count - options.cooldown_start_step, 1);
  options.final_fraction = recipe.final_fraction;
  options.period4_start_step = Share(recipe.period4_start, step_count) / 4 * 4;
  return options;
}

}  // namespace rowhouse::ngram_lm
