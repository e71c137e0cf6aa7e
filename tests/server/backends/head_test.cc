// Head calls over gRPC, on each backend beside the CPU. Products are summed in
// other orders, so that results are near each other, not the same.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/arithmetic.h"
#include "rowhouse/adamw.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/server/backends/training.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr size_t kTokens = 300;
constexpr int64_t kEvents = 3;

struct HeadOutcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> hidden_gradients;
};

class BackendHeadTest : public OnBackendTest {
 protected:
  static HeadOutcome Train(client::Cluster& cluster, int32_t shard_count) {
    HeadOutcome outcome;
    client::TableSpec spec = DenseSpec(shard_count);
    spec.trainer_count = 1;
    EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
    const auto trainer = client::Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    const auto head = client::LmHead::Create(**trainer);
    EXPECT_THAT(head, IsOk());
    Random random(5);
    std::vector<uint16_t> hidden(kTokens * static_cast<size_t>(spec.dim));
    for (uint16_t& x : hidden) x = kernels::FloatToBf16(random.Normal());
    std::vector<int64_t> targets(kTokens);
    for (int64_t& target : targets) {
      target = random.Integer(0, spec.row_count - 1);
    }
    for (int64_t event = 1; event <= kEvents; ++event) {
      const auto loss = (*head)->Forward(
          {std::as_bytes(std::span(hidden)), client::DType::kBf16, targets},
          {.event = event});
      EXPECT_THAT(loss, IsOk());
      if (!loss.ok()) break;
      outcome.losses.push_back((*loss)->loss());
      std::vector<float> gradient(hidden.size());
      EXPECT_THAT(
          (*loss)->Backward(1.0, std::as_writable_bytes(std::span(gradient)),
                            {.gradient_dtype = client::DType::kFp32}),
          IsOk());
      outcome.hidden_gradients.push_back(gradient);
      EXPECT_THAT(
          (*trainer)->SealAndCommit(
              event, client::MakeAdamWScalars({.learning_rate = 0.05}, event)),
          IsOk());
    }
    return outcome;
  }

  // Of the difference, relative to `wanted`.
  static double Norm(const std::vector<float>& found,
                     const std::vector<float>& wanted) {
    double difference = 0;
    double whole = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      difference += std::pow(double{found[i]} - double{wanted[i]}, 2);
      whole += std::pow(double{wanted[i]}, 2);
    }
    return std::sqrt(difference / whole);
  }
};

TEST_P(BackendHeadTest, TrainsLikeTheCpu) {
  const BackendCluster cpu = Servers("cpu", 1);
  const HeadOutcome wanted = Train(*cpu, 1);
  const BackendCluster other = Servers(GetParam(), 2);
  const HeadOutcome found = Train(*other, 2);
  ASSERT_EQ(found.losses.size(), size_t{kEvents});
  EXPECT_LT(wanted.losses.back(), 0.9 * wanted.losses.front());
  for (size_t i = 0; i < found.losses.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "event " << i + 1);
    EXPECT_NEAR(found.losses[i], wanted.losses[i], 1e-3 * wanted.losses[i]);
    // p is rounded to bf16, 2^-9 of itself, from logits that differ a little.
    EXPECT_LT(Norm(found.hidden_gradients[i], wanted.hidden_gradients[i]),
              1e-2);
  }
}

TEST_P(BackendHeadTest, RepeatsItsBits) {
  const BackendCluster first = Servers(GetParam(), 2);
  const BackendCluster second = Servers(GetParam(), 2);
  const HeadOutcome wanted = Train(*first, 2);
  const HeadOutcome found = Train(*second, 2);
  EXPECT_EQ(found.losses, wanted.losses);
  EXPECT_EQ(found.hidden_gradients, wanted.hidden_gradients);
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendHeadTest,
                         ::testing::Values("cpu", "cuda"), NameOfBackend);

}  // namespace
}  // namespace rowhouse::testing
