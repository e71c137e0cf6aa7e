#include "tests/server/one_sided/head_outcome.h"

#include <cstdint>
#include <span>

#include "gtest/gtest.h"
#include "kernels/arithmetic.h"
#include "rowhouse/adamw.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "tests/server/backends/training.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {

HeadOutcome RunHead(client::Cluster& cluster) {
  constexpr int64_t kTokens = 700;
  constexpr int64_t kDim = 96;
  client::TableSpec spec = DenseSpec(2);
  spec.trainer_count = 1;
  spec.dense->max_head_token_count = 2 * kTokens;
  EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
  const auto trainer = client::Trainer::Join(cluster, "t", 0);
  const auto head = client::LmHead::Create(**trainer);
  Random random(5);
  std::vector<uint16_t> hidden(kTokens * kDim);
  for (uint16_t& value : hidden) value = kernels::FloatToBf16(random.Normal());
  std::vector<int64_t> targets(kTokens);
  for (int64_t& target : targets) target = random.Integer(0, 299);
  HeadOutcome outcome;
  for (int part = 0; part < 2; ++part) {
    const auto loss = (*head)->Forward(
        {std::as_bytes(std::span(hidden)), client::DType::kBf16, targets},
        {.event = 1});
    EXPECT_THAT(loss, IsOk());
    if (!loss.ok()) return outcome;
    outcome.losses.insert(outcome.losses.end(), (*loss)->token_losses().begin(),
                          (*loss)->token_losses().end());
    outcome.hidden_gradient.resize(hidden.size() * sizeof(uint16_t));
    EXPECT_THAT((*loss)->Backward(1.0, outcome.hidden_gradient), IsOk());
  }
  EXPECT_THAT((*trainer)->SealAndCommit(
                  1, client::MakeAdamWScalars({.learning_rate = 0.01}, 1)),
              IsOk());
  const auto digest = cluster.Digest("t", 1);
  EXPECT_THAT(digest, IsOk());
  if (digest.ok()) outcome.digest = *digest;
  return outcome;
}

void ExpectSame(const HeadOutcome& got, const HeadOutcome& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_TRUE(got.hidden_gradient == want.hidden_gradient);
  EXPECT_EQ(got.digest, want.digest);
}

}  // namespace rowhouse::testing
