#include "server/shard/class_weights.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "proto/wire/error.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using testing::IsOk;
using Held = std::shared_ptr<const HeldClassWeights>;

class ClassWeightSetsTest : public ::testing::Test {
 protected:
  Held Hold(const std::vector<float>& values) {
    auto held = sets_.Hold(values);
    EXPECT_THAT(held, IsOk());
    return held.ok() ? *std::move(held) : nullptr;
  }

  std::unique_ptr<kernels::Backend> backend_ =
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1));
  ClassWeightSets sets_{*backend_};
};

TEST_F(ClassWeightSetsTest, EqualOnesAreOne) {
  const Held first = Hold({1, 2, 0.5F});
  EXPECT_EQ(Hold({1, 2, 0.5F}), first);
  EXPECT_NE(Hold({2, 1, 0.5F}), first);
  EXPECT_NE(Hold({1, 2}), first);
  EXPECT_EQ(first->set->row_count, 3);
  EXPECT_EQ(first->set->largest, 2);
  EXPECT_EQ(first->set->values()[2], 0.5F);
}

TEST_F(ClassWeightSetsTest, TooManyThatDifferAreRefusedUntilOneHasGone) {
  std::vector<Held> held;
  for (int i = 0; i < ClassWeightSets::kMost; ++i) {
    held.push_back(Hold({static_cast<float>(i)}));
  }
  EXPECT_EQ(Hold({3}), held[3]);
  const std::vector<float> more = {100};
  const auto refused = sets_.Hold(more);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(wire::ReasonOf(refused.status()), "CLASS_WEIGHTS_FULL");
  held.pop_back();
  EXPECT_NE(Hold(more), nullptr);
}

TEST_F(ClassWeightSetsTest, WhoKeepsASetThatNobodyHoldsIsInNobodysWay) {
  std::vector<std::shared_ptr<const ClassWeights>> kept;
  for (int i = 0; i < 2 * ClassWeightSets::kMost; ++i) {
    kept.push_back(Hold({static_cast<float>(i)})->set);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i]->values()[0], static_cast<float>(i));
  }
}

}  // namespace
}  // namespace rowhouse::server
