#ifndef ROWHOUSE_ADAMW_H_
#define ROWHOUSE_ADAMW_H_

#include <cstdint>

#include "rowhouse/types.h"

namespace rowhouse::client {

/// AdamW of a dense table, as a trainer chooses it for an event.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0.01;  ///< Decoupled: a row loses lr * wd of itself.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double gradient_scale = 1;  ///< Clipping, 1 / loss scale.
};

/// The scalars of the event that is the `applied_count`-th to be applied, from
/// 1: skipped events do not count. Bias corrections are `1 -
/// beta^applied_count` in fp64.
///
/// REQUIRES: `applied_count` is at least 1.
AdamWScalars MakeAdamWScalars(const AdamWOptions& options,
                              int64_t applied_count);

}  // namespace rowhouse::client

#endif  // ROWHOUSE_ADAMW_H_
