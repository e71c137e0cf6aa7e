#include "tests/server/one_sided/device_training.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/arithmetic.h"
#include "rowhouse/adamw.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "tests/client/device_buffer.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::RowList;
using client::RowSet;
using client::Trainer;

constexpr int64_t kRowCount = 4000;
constexpr int64_t kDim = 96;
constexpr int64_t kMostRows = 9000;  // Over 3 MiB, so several messages.

// An array where the test has it: in the device's memory, or the host's.
template <typename T>
class Placed {
 public:
  Placed(kernels::Backend* device, std::vector<T> values) {
    if (device != nullptr) {
      on_device_.emplace(*device, values);
    } else {
      on_host_ = std::move(values);
    }
  }
  std::span<T> span() {
    return on_device_.has_value() ? on_device_->span() : std::span(on_host_);
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(span()); }
  std::vector<T> Read() const {
    return on_device_.has_value() ? on_device_->Read() : on_host_;
  }

 private:
  std::optional<DeviceBuffer<T>> on_device_;
  std::vector<T> on_host_;
};
using Floats = Placed<float>;

// Pulls rows and pushes their gradients.
void Step(Trainer& trainer, kernels::Backend* device, int64_t event,
          Random& random, DeviceOutcome& outcome) {
  std::vector<int64_t> row_ids(random.Integer(0, kMostRows));
  // Now and then rows of one shard only.
  const int64_t end = random.Chance(0.3) ? kRowCount / 2 - 1 : kRowCount - 1;
  for (int64_t& id : row_ids) id = random.Integer(0, end);
  Floats out(device, std::vector<float>(row_ids.size() * kDim, -99));
  const auto list = trainer.PrepareRows(row_ids);
  ASSERT_THAT(list, IsOk());
  const client::PullOptions options = {.exact_event = event - 1};
  const auto pulled =
      event % 2 == 0 ? trainer.Pull(*list, out.bytes(), options)
                     : trainer.PullAsync(row_ids, out.bytes(), options).Wait();
  ASSERT_THAT(pulled, IsOk());
  outcome.rows.push_back(out.Read());
  Floats again(device, std::vector<float>(row_ids.size() * kDim, -99));
  ASSERT_THAT(trainer.Repull(*pulled, again.bytes()), IsOk());
  ASSERT_TRUE(again.Read() == outcome.rows.back());

  std::vector<float> values(row_ids.size() * kDim);
  for (float& value : values) value = random.Normal();
  Floats gradients(device, std::move(values));
  ASSERT_THAT(trainer.Push(event, *pulled, gradients.bytes()), IsOk());
  ASSERT_THAT(trainer.Push(event, *list, gradients.bytes()), IsOk());
  ASSERT_THAT(trainer.Push(event, row_ids, gradients.bytes()), IsOk());
  ASSERT_THAT(
      trainer.SealAndCommit(
          event,
          client::RowAdamScalars{
              .step_size = 0.1, .decay = 0.01, .beta2 = 0.95, .eps = 1e-10}),
      IsOk());
}

}  // namespace

DeviceOutcome TrainIn(client::Cluster& cluster, kernels::Backend* device,
                      int32_t shard_count, uint64_t seed) {
  constexpr int64_t kEvents = 5;
  Random random(seed);
  SCOPED_TRACE(random.Trace());
  client::TableSpec spec = SmallSpec(kRowCount, shard_count);
  spec.dim = kDim;
  spec.initializer = {client::Initializer::Kind::kUniform, seed, 0.5F};
  spec.max_contribution_row_count = 3 * kMostRows;
  DeviceOutcome outcome;
  EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
  {
    const auto trainer = Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    if (!trainer.ok()) return outcome;
    for (int64_t event = 1; event <= kEvents; ++event) {
      Step(**trainer, device, event, random, outcome);
      if (::testing::Test::HasFatalFailure()) return outcome;
    }
    EXPECT_THAT((*trainer)->WaitForEvent(kEvents), IsOk());
  }
  const auto digest = cluster.Digest("t", kEvents);
  EXPECT_THAT(digest, IsOk());
  if (digest.ok()) outcome.digest = *digest;
  EXPECT_THAT(cluster.DeleteTable("t"), IsOk());
  return outcome;
}

DeviceHeadOutcome RunHeadIn(client::Cluster& cluster, kernels::Backend* device,
                            int32_t shard_count, uint64_t seed) {
  constexpr int64_t kTokens = 9000;  // Over 1 MiB, so several messages.
  constexpr int64_t kRows = 300;
  Random random(seed);
  SCOPED_TRACE(random.Trace());
  client::TableSpec spec = SmallSpec(kRows, shard_count);
  spec.dim = kDim;
  spec.row_dtype = client::DType::kBf16;
  spec.gradient_dtype = client::DType::kBf16;
  spec.initializer = {client::Initializer::Kind::kUniform, seed, 0.5F};
  spec.dense = client::DenseTableSpec{.max_head_token_count = kTokens};
  DeviceHeadOutcome outcome;
  EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
  {
    const auto trainer = Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    if (!trainer.ok()) return outcome;
    std::vector<uint16_t> states(kTokens * kDim);
    for (uint16_t& state : states) {
      state = kernels::FloatToBf16(random.Normal());
    }
    std::vector<int64_t> rows(kTokens);
    for (int64_t& row : rows) {
      row = random.Chance(0.1) ? -100 : random.Integer(0, kRows - 1);
    }
    Placed<uint16_t> hidden(device, states);
    Placed<int64_t> targets(device, rows);
    Placed<uint16_t> gradient(device, std::vector<uint16_t>(states.size(), 9));
    const auto head = client::LmHead::Create(**trainer);
    const auto loss = (*head)->Forward(
        {hidden.bytes(), client::DType::kBf16, targets.span()}, {.event = 1});
    EXPECT_THAT(loss, IsOk());
    if (!loss.ok()) return outcome;
    EXPECT_THAT((*loss)->Backward(1.0, gradient.bytes()), IsOk());
    outcome.losses = {(*loss)->token_losses().begin(),
                      (*loss)->token_losses().end()};
    outcome.hidden_gradient = gradient.Read();
    EXPECT_THAT((*trainer)->SealAndCommit(
                    1, client::MakeAdamWScalars({.learning_rate = 0.01}, 1)),
                IsOk());
    EXPECT_THAT((*trainer)->WaitForEvent(1), IsOk());
  }
  const auto digest = cluster.Digest("t", 1);
  EXPECT_THAT(digest, IsOk());
  if (digest.ok()) outcome.digest = *digest;
  EXPECT_THAT(cluster.DeleteTable("t"), IsOk());
  return outcome;
}

}  // namespace rowhouse::testing
