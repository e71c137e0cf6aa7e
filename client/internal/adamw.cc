#include "rowhouse/adamw.h"

#include <cmath>

namespace rowhouse::client {

AdamWScalars MakeAdamWScalars(const AdamWOptions& options,
                              int64_t applied_count) {
  const auto n = static_cast<double>(applied_count);
  return {.learning_rate = options.learning_rate,
          .weight_decay = options.weight_decay,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .bias_correction1 = 1.0 - std::pow(options.beta1, n),
          .bias_correction2 = 1.0 - std::pow(options.beta2, n),
          .gradient_scale = options.gradient_scale};
}

}  // namespace rowhouse::client
