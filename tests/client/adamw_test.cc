#include "rowhouse/adamw.h"

#include "gmock/gmock.h"

namespace rowhouse::client {
namespace {

TEST(MakeAdamWScalarsTest, CorrectsTheBiasOfTheFirstEvents) {
  const AdamWOptions options = {.learning_rate = 0.5,
                                .weight_decay = 0.25,
                                .beta1 = 0.5,
                                .beta2 = 0.75,
                                .eps = 1e-6,
                                .gradient_scale = 2};
  const AdamWScalars first = MakeAdamWScalars(options, 1);
  EXPECT_EQ(first, (AdamWScalars{.learning_rate = 0.5,
                                 .weight_decay = 0.25,
                                 .beta1 = 0.5,
                                 .beta2 = 0.75,
                                 .eps = 1e-6,
                                 .bias_correction1 = 0.5,
                                 .bias_correction2 = 0.25,
                                 .gradient_scale = 2}));
  const AdamWScalars third = MakeAdamWScalars(options, 3);
  EXPECT_EQ(third.bias_correction1, 0.875);
  EXPECT_EQ(third.bias_correction2, 1 - 0.421875);
  EXPECT_EQ(MakeAdamWScalars(options, 100'000).bias_correction2, 1);
}

}  // namespace
}  // namespace rowhouse::client
