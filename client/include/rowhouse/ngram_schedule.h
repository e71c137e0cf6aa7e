#ifndef ROWHOUSE_NGRAM_SCHEDULE_H_
#define ROWHOUSE_NGRAM_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "rowhouse/types.h"

namespace rowhouse::client {

/// The schedule of the public n-gram table run (modded-nanogpt
/// `track_1_short`), by training step from 0.
struct RowAdamScheduleOptions {
  double base_learning_rate = 0.008;
  double learning_rate_multiplier = 70;
  /// End step of each stage, and its factor on the learning rate.
  std::vector<int64_t> stage_ends = {320, 681, 1107, 1174, 1194};
  std::vector<double> stage_multipliers = {1.0, 1.52, 1.73, 1.579266707473229,
                                           1.0};
  /// From this step on the rate falls, over so many steps, to `final_fraction`
  /// of the base rate.
  int64_t cooldown_start_step = 234;
  int64_t cooldown_step_count = 940;
  double final_fraction = 0.30;

  double weight_decay = 0.005;
  double weight_decay_multiplier = 5;
  double beta2 = 0.95;
  double eps = 1e-10;

  /// From this step, a multiple of 4, an event closes every fourth step rather
  /// than every second, with these values.
  int64_t period4_start_step = 336;
  double period4_weight_decay_multiplier = 10;
  double period4_beta2 = 0.95 * 0.95;
};

/// Gives cadence and scalars by step, in fp64.
///
/// Thread-safe.
class RowAdamSchedule {
 public:
  /// REQUIRES: as many stages as multipliers, at least one, ends ascending.
  explicit RowAdamSchedule(RowAdamScheduleOptions options = {});

  /// Whether a cycle ends with `step`: an event follows it.
  bool IsUpdate(int64_t step) const;

  /// The last step of the cycle that `step` is in.
  int64_t CycleEnd(int64_t step) const;

  /// Of the stage and the cooldown; without `learning_rate_multiplier`.
  double BaseLearningRate(int64_t step) const;

  double Beta2(int64_t step) const;
  double WeightDecayMultiplier(int64_t step) const;

  /// Scalars of the event that closes with `step`, with
  /// lr = base(step) * learning_rate_multiplier:
  /// step_size = lr * sqrt(1 - beta2^n), decay = lr^2 * weight decay.
  /// `applied_count` n counts the applied events, this one included; skipped
  /// ones do not count.
  ///
  /// REQUIRES: `applied_count >= 1`.
  RowAdamScalars Scalars(int64_t step, int64_t applied_count) const;

 private:
  RowAdamScheduleOptions options_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_NGRAM_SCHEDULE_H_
