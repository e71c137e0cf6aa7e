#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_RECIPE_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_RECIPE_H_

#include <cstdint>
#include <vector>

#include "client/examples/ngram_lm/context_model.h"
#include "rowhouse/ngram_schedule.h"

namespace rowhouse::ngram_lm {

/// How the model is trained: what was found to work on the text that comes with
/// it, chosen on a part of the training text.
struct Recipe {
  std::vector<Average> averages = {{0, 0.9F}, {0.9F, 3}, {0.97F, 4.5F}};
  float initial_bound = 0.1F;  ///< Of the dense table: uniform in +-bound.

  // The dense table: AdamW, an event every step.
  double learning_rate = 0.016;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t warmup_step_count = 10;

  // The n-gram table: row Adam, in the cadence of the public run.
  double row_learning_rate = 0.0135;
  double period4_start = 0.28;  ///< Share of the run: 336 of 1,194 steps there.

  // Both: constant, then linear down to a share of the peak.
  double cooldown_start = 0.3;  ///< Share of the run.
  double final_fraction = 0.1;
};

/// Learning rate of the dense table in `step`, from 0.
double DenseLearningRate(const Recipe& recipe, int64_t step,
                         int64_t step_count);

/// Cadence and scalars of the n-gram table.
client::RowAdamScheduleOptions NgramSchedule(const Recipe& recipe,
                                             int64_t step_count);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_RECIPE_H_
