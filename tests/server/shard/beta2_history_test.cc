#include "server/shard/beta2_history.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/hash.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Random;
using ::testing::ElementsAre;

class Beta2HistoryTest : public ::testing::Test {
 protected:
  Beta2History Make() { return *Beta2History::Create(*backend_); }

  std::unique_ptr<kernels::Backend> backend_ =
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1));
};

TEST_F(Beta2HistoryTest, BeginsWithoutEvents) {
  const Beta2History history = Make();
  EXPECT_EQ(history.event_count(), 0);
  EXPECT_EQ(history.view().event_count, 0);
  EXPECT_NE(history.view().beta2, nullptr);
}

TEST_F(Beta2HistoryTest, KeepsTheLeastOfEachSuffix) {
  Beta2History history = Make();
  for (const float beta2 : {0.9F, 0.5F, 1.0F, 0.75F}) {
    ASSERT_THAT(history.Append(beta2), IsOk());
  }
  EXPECT_THAT(history.beta2(), ElementsAre(1.0F, 0.9F, 0.5F, 1.0F, 0.75F));
  EXPECT_THAT(history.suffix_min(),
              ElementsAre(1.0F, 0.5F, 0.5F, 0.75F, 0.75F));
}

TEST_F(Beta2HistoryTest, TheBackendSeesEveryValueAfterGrowing) {
  Random random(5);
  SCOPED_TRACE(random.Trace());
  Beta2History history = Make();
  for (int event = 0; event < 2500; ++event) {
    ASSERT_THAT(history.Append(random.Uniform(0, 1)), IsOk());
  }
  const kernels::Beta2History view = history.view();
  ASSERT_EQ(view.event_count, 2500);
  float least = 2.0F;
  for (int64_t event = 2500; event >= 1; --event) {
    ASSERT_EQ(view.beta2[event], history.beta2()[event]);
    least = std::min(least, view.beta2[event]);
    ASSERT_EQ(view.suffix_min[event], least);
  }
}

TEST_F(Beta2HistoryTest, DigestIsThatOfTheStatedHash) {
  Beta2History history = Make();
  ASSERT_THAT(history.Append(0.5F), IsOk());
  const std::vector<float> values = {1.0F, 0.5F};
  EXPECT_EQ(history.Digest(), kernels::HistoryDigest(values.data(), 1));
}

}  // namespace
}  // namespace rowhouse::server
