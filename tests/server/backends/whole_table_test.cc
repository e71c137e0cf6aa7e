// A table too large for 32-bit offsets, over gRPC; of the size of the n-gram
// table on a GPU.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/arithmetic.h"
#include "rowhouse/trainer.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kDim = 768;
constexpr int64_t kMemoryLimit = int64_t{1} << 40;

struct WholeTableCase {
  std::string backend;
  int64_t row_count;
  int64_t touched_row_count;
};

void PrintTo(const WholeTableCase& table, std::ostream* out) {
  *out << table.backend << ", " << table.row_count << " rows";
}

client::TableSpec Spec(int64_t row_count) {
  client::TableSpec spec;
  spec.row_count = row_count;
  spec.dim = kDim;
  spec.gradient_reduction = client::GradientReduction::kSum;
  spec.max_contribution_row_count = 20'000;
  spec.max_part_count = 1;
  return spec;
}

std::vector<std::byte> GradientsOf(size_t row_count, uint64_t seed) {
  Random random(seed);
  std::vector<uint16_t> values(row_count * kDim);
  for (uint16_t& value : values) value = kernels::FloatToBf16(random.Normal());
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Rows `row_ids` after three events that touch each of them once.
std::vector<std::byte> TrainRows(client::Cluster& cluster, int64_t row_count,
                                 const std::vector<int64_t>& row_ids) {
  std::vector<std::byte> rows(row_ids.size() * kDim * sizeof(uint16_t));
  EXPECT_THAT(cluster.CreateTable("t", Spec(row_count)), IsOk());
  const auto trainer = client::Trainer::Join(cluster, "t", 0);
  EXPECT_THAT(trainer, IsOk());
  if (!trainer.ok()) return rows;
  for (int64_t event = 1; event <= 3; ++event) {
    EXPECT_THAT((*trainer)->Push(
                    event, row_ids,
                    GradientsOf(row_ids.size(), static_cast<uint64_t>(event))),
                IsOk());
    EXPECT_THAT((*trainer)->SealAndCommit(
                    event, client::RowAdamScalars{.step_size = 0.01,
                                                  .decay = 0.001,
                                                  .beta2 = 0.95,
                                                  .eps = 1e-10}),
                IsOk());
    // A part may be two events ahead at most.
    EXPECT_THAT((*trainer)->WaitForEvent(event), IsOk());
  }
  EXPECT_THAT(cluster.ReadRows("t", row_ids, rows, {.exact_event = 3}), IsOk());
  return rows;
}

class WholeTableTest : public ::testing::TestWithParam<WholeTableCase> {};

// A row's bits do not depend on where it lies.
TEST_P(WholeTableTest, RowsAreThoseOfATableOfTouchedRowsAlone) {
  const WholeTableCase& table = GetParam();
  const auto whole = BackendCluster::Start(table.backend, 1, kMemoryLimit);
  if (table.backend == "cuda" && kernels::MayLackGpu(whole.status())) {
    GTEST_SKIP() << whole.status();
  }
  ASSERT_THAT(whole, IsOk());
  // Spread evenly, the one where 32-bit offsets overflow, a middle, the last.
  std::vector<int64_t> row_ids = {2'796'202, 2'796'203, table.row_count / 2,
                                  table.row_count - 1};
  const int64_t step = table.row_count / table.touched_row_count;
  for (int64_t row = 0; row < table.row_count - step; row += step) {
    row_ids.push_back(row);
  }
  std::sort(row_ids.begin(), row_ids.end());
  row_ids.erase(std::unique(row_ids.begin(), row_ids.end()), row_ids.end());
  const std::vector<std::byte> found =
      TrainRows(**whole, table.row_count, row_ids);

  const auto alone = BackendCluster::Start("cpu", 1, kMemoryLimit);
  ASSERT_THAT(alone, IsOk());
  std::vector<int64_t> all(row_ids.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_TRUE(found ==
              TrainRows(**alone, static_cast<int64_t>(all.size()), all));
}

INSTANTIATE_TEST_SUITE_P(Backends, WholeTableTest,
                         ::testing::Values(WholeTableCase{"cpu", 2'900'000, 20},
                                           WholeTableCase{"cuda", 84'602'880,
                                                          10'000}),
                         [](const auto& table) { return table.param.backend; });

}  // namespace
}  // namespace rowhouse::testing
