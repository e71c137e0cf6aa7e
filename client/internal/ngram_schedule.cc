#include "rowhouse/ngram_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rowhouse::client {

RowAdamSchedule::RowAdamSchedule(RowAdamScheduleOptions options)
    : options_(std::move(options)) {}

bool RowAdamSchedule::IsUpdate(int64_t step) const {
  return step < options_.period4_start_step ? step % 2 == 1 : step % 4 == 3;
}

int64_t RowAdamSchedule::CycleEnd(int64_t step) const {
  while (!IsUpdate(step)) ++step;
  return step;
}

double RowAdamSchedule::BaseLearningRate(int64_t step) const {
  const auto stage = std::upper_bound(options_.stage_ends.begin(),
                                      options_.stage_ends.end(), step) -
                     options_.stage_ends.begin();
  const auto last =
      static_cast<std::ptrdiff_t>(options_.stage_multipliers.size()) - 1;
  const double multiplier =
      options_.stage_multipliers[std::min<std::ptrdiff_t>(stage, last)];
  if (step < options_.cooldown_start_step) {
    return options_.base_learning_rate * multiplier;
  }
  const double t =
      std::min(1.0, static_cast<double>(step - options_.cooldown_start_step) /
                        static_cast<double>(options_.cooldown_step_count));
  return options_.base_learning_rate *
         (multiplier * (1.0 - t) + options_.final_fraction * t);
}

double RowAdamSchedule::Beta2(int64_t step) const {
  return step < options_.period4_start_step ? options_.beta2
                                            : options_.period4_beta2;
}

double RowAdamSchedule::WeightDecayMultiplier(int64_t step) const {
  return step < options_.period4_start_step
             ? options_.weight_decay_multiplier
             : options_.period4_weight_decay_multiplier;
}

RowAdamScalars RowAdamSchedule::Scalars(int64_t step,
                                        int64_t applied_count) const {
  const double beta2 = Beta2(step);
  const double rate =
      BaseLearningRate(step) * options_.learning_rate_multiplier;
  return {
      .step_size =
          rate *
          std::sqrt(1.0 - std::pow(beta2, static_cast<double>(applied_count))),
      .decay =
          rate * rate * options_.weight_decay * WeightDecayMultiplier(step),
      .beta2 = beta2,
      .eps = options_.eps};
}

}  // namespace rowhouse::client
