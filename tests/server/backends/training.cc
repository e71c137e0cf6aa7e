#include "tests/server/backends/training.h"

#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "gmock/gmock.h"
#include "kernels/arithmetic.h"
#include "rowhouse/adamw.h"
#include "rowhouse/trainer.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;

constexpr int32_t kTrainers = 2;
constexpr int64_t kDim = 96;

client::TableSpec Spec(int64_t row_count, int32_t shard_count) {
  client::TableSpec spec;
  spec.row_count = row_count;
  spec.dim = kDim;
  spec.shard_count = shard_count;
  spec.initializer = {client::Initializer::Kind::kUniform, 7, 0.5F};
  spec.trainer_count = kTrainers;
  spec.gradient_reduction = client::GradientReduction::kMean;
  spec.max_contribution_row_count = 2000;
  spec.max_part_count = 2;
  spec.max_pull_bytes = 1 << 20;
  return spec;
}

std::vector<std::byte> Gradients(Random& random, size_t row_count) {
  std::vector<uint16_t> values(row_count * kDim);
  for (uint16_t& value : values) value = kernels::FloatToBf16(random.Normal());
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Half of them one of ten rows.
std::vector<int64_t> RowIds(Random& random, int64_t row_count) {
  std::vector<int64_t> ids(static_cast<size_t>(random.Integer(0, 700)));
  for (int64_t& id : ids) {
    id = random.Chance(0.5) ? random.Integer(0, 9) * (row_count / 10)
                            : random.Integer(0, row_count - 1);
  }
  return ids;
}

// One part by ids, one by what was pulled.
void Contribute(Trainer& trainer, int64_t event, Random& random) {
  const int64_t row_count = trainer.table().spec.row_count;
  const std::vector<int64_t> ids = RowIds(random, row_count);
  EXPECT_THAT(trainer.Push(event, ids, Gradients(random, ids.size())), IsOk());
  const std::vector<int64_t> wanted = {1, 5, row_count / 2, row_count - 1};
  std::vector<std::byte> rows(wanted.size() * kDim * sizeof(uint16_t));
  const auto pulled = trainer.Pull(wanted, rows, {.exact_event = event - 1});
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(trainer.Push(event, *pulled, Gradients(random, wanted.size())),
              IsOk());
  EXPECT_THAT(trainer.Seal(event), IsOk());
}

client::EventUpdate Update(bool dense, int64_t event) {
  if (event == 2) return client::SkipEvent();
  const int64_t applied = event > 2 ? event - 1 : event;
  if (dense) return client::MakeAdamWScalars({.learning_rate = 0.01}, applied);
  return client::RowAdamScalars{.step_size = 0.01 / static_cast<double>(event),
                                .decay = 0.001,
                                .beta2 = 0.95,
                                .eps = 1e-10,
                                .gradient_scale = 0.5};
}

void AddState(client::Cluster& cluster, const client::TableSpec& spec,
              int64_t event, Outcome& outcome) {
  const auto digest = cluster.Digest("t", event);
  ASSERT_THAT(digest, IsOk());
  outcome.digests.push_back(*digest);
  std::vector<int64_t> all(static_cast<size_t>(spec.row_count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::byte> rows(all.size() * kDim * sizeof(uint16_t));
  EXPECT_THAT(cluster.ReadRows("t", all, rows, {.exact_event = event}), IsOk());
  outcome.rows.push_back(std::move(rows));
}

}  // namespace

client::TableSpec SparseSpec(int32_t shard_count) {
  return Spec(2000, shard_count);
}

client::TableSpec DenseSpec(int32_t shard_count) {
  client::TableSpec spec = Spec(300, shard_count);
  spec.dense = client::DenseTableSpec{
      .has_master = true, .has_bias = true, .max_head_token_count = 500};
  return spec;
}

Outcome Train(client::Cluster& cluster, const client::TableSpec& spec,
              int64_t event_count, uint64_t seed) {
  Outcome outcome;
  Random random(seed);
  EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int32_t rank = 0; rank < kTrainers; ++rank) {
    auto trainer = Trainer::Join(cluster, "t", rank);
    EXPECT_THAT(trainer, IsOk());
    if (!trainer.ok()) return outcome;
    trainers.push_back(*std::move(trainer));
  }
  AddState(cluster, spec, 0, outcome);
  for (int64_t event = 1; event <= event_count; ++event) {
    for (const auto& trainer : trainers) Contribute(*trainer, event, random);
    client::GradientStatistics statistics;
    EXPECT_THAT(trainers[0]->Commit(
                    event, client::DecideEvent(
                               [&](const client::GradientStatistics& found) {
                                 statistics = found;
                                 return Update(spec.dense.has_value(), event);
                               })),
                IsOk());
    EXPECT_THAT(trainers[0]->WaitForEvent(event), IsOk());
    outcome.statistics.push_back(statistics);
    AddState(cluster, spec, event, outcome);
    if (::testing::Test::HasFailure()) break;
  }
  return outcome;
}

void ExpectSame(const Outcome& found, const Outcome& wanted) {
  EXPECT_EQ(found.digests, wanted.digests);
  EXPECT_TRUE(found.rows == wanted.rows);
  ASSERT_EQ(found.statistics.size(), wanted.statistics.size());
  for (size_t i = 0; i < found.statistics.size(); ++i) {
    const client::GradientStatistics& a = found.statistics[i];
    const client::GradientStatistics& b = wanted.statistics[i];
    EXPECT_EQ(a.sum_of_squares, b.sum_of_squares) << "event " << i + 1;
    EXPECT_EQ(a.row_count, b.row_count) << "event " << i + 1;
    EXPECT_EQ(a.non_finite_row_count, b.non_finite_row_count);
  }
}

}  // namespace rowhouse::testing
