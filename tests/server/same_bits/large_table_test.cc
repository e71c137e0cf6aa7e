// Promises P5 and P6: costs follow the rows touched, and row and element
// offsets are 64 bits wide.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "server/shard/timer_queue.h"
#include "tests/server/same_bits/scenario.h"
#include "tests/server/shard/blocking_shard.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kNgramRows = 84'602'880;

// One shard of a whole table, with one trainer.
class WholeTable {
 public:
  WholeTable(int64_t row_count, int64_t dim) : dim_(dim) {
    const server::ShardSpec spec{
        .table = "tables/t",
        .placement = wire::Placement::Even(row_count, 1),
        .dim = dim,
        .initializer = {},
        .max_contribution_row_count = 1000};
    auto shard = server::Shard::Create(spec, {}, *backend_, *timers_);
    EXPECT_THAT(shard, IsOk());
    owned_ = *std::move(shard);
    shard_ = std::make_unique<BlockingShard>(*owned_);
    EXPECT_THAT(shard_->OpenSession({0, 1}), IsOk());
  }

  // Row i of `row_ids` gets the gradient (i + 1, 1, 1, ...).
  void ApplyEvent(const std::vector<int64_t>& row_ids) {
    ++event_;
    PartToPush push;
    push.trainer = {0, 1};
    push.event = event_;
    push.row_ids = row_ids;
    for (size_t i = 0; i < row_ids.size(); ++i) {
      std::vector<float> row(static_cast<size_t>(dim_), 1.0F);
      row[0] = static_cast<float>(i + 1);
      push.rows += ToBytes(row, kernels::DType::kBf16);
    }
    push.seal_part_count = 1;
    push.commit = server::EventCommit{{1}, false, {0.5, 0.01, 0.95, 1e-10, 1}};
    ASSERT_THAT(shard_->Push(push), IsOk());
  }

  std::string Rows(const std::vector<int64_t>& row_ids) {
    auto pulled = shard_->Pull(row_ids);
    EXPECT_THAT(pulled, IsOk());
    return pulled.ok() ? pulled->rows : std::string();
  }

  kernels::EventReport LastReport() {
    auto state = shard_->GetEventState();
    EXPECT_THAT(state, IsOk());
    return state->applied_events.back().report;
  }

 private:
  int64_t dim_;
  int64_t event_ = 0;
  std::unique_ptr<kernels::Backend> backend_ =
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(2));
  std::unique_ptr<server::TimerQueue> timers_ = server::MakeSystemTimerQueue();
  std::unique_ptr<server::Shard> owned_;
  std::unique_ptr<BlockingShard> shard_;
};

// Trains `row_ids` of a table of `row_count` rows, and rows 0, 1, ... of a
// small one alike; expects the same rows, and zeros in `untouched`.
void ExpectRowsAsInSmallTable(int64_t row_count, int64_t dim,
                              const std::vector<int64_t>& row_ids,
                              const std::vector<int64_t>& untouched) {
  std::vector<int64_t> small_ids;
  for (size_t i = 0; i < row_ids.size(); ++i) {
    small_ids.push_back(static_cast<int64_t>(i));
  }
  WholeTable large(row_count, dim);
  WholeTable small(static_cast<int64_t>(row_ids.size()), dim);
  for (int event = 0; event < 2; ++event) {
    ASSERT_NO_FATAL_FAILURE(large.ApplyEvent(row_ids));
    ASSERT_NO_FATAL_FAILURE(small.ApplyEvent(small_ids));
  }
  const std::string expected = small.Rows(small_ids);
  ASSERT_NE(expected, std::string(expected.size(), '\0'));
  EXPECT_EQ(large.Rows(row_ids), expected);
  const std::string zeros(untouched.size() * static_cast<size_t>(dim) * 2,
                          '\0');
  EXPECT_EQ(large.Rows(untouched), zeros);
  // Costs follow the rows touched.
  EXPECT_EQ(large.LastReport().row_visits,
            static_cast<int64_t>(row_ids.size()));
  EXPECT_EQ(large.LastReport().row_visits, small.LastReport().row_visits);
  EXPECT_EQ(large.LastReport().bytes_moved, small.LastReport().bytes_moved);
}

TEST(LargeTable, TheWholeNgramTableIsUpdatedAtItsBorders) {
  ExpectRowsAsInSmallTable(
      kNgramRows, 4,
      {0, 2'796'202, 2'796'203, 42'301'439, 42'301'440, kNgramRows - 1},
      {1, 2'796'201, 2'796'204, 42'301'438, 42'301'441, kNgramRows - 2});
}

// Row 2,796,203 of 768 elements begins past element 2^31 and byte 2^32.
TEST(LargeTable, OffsetsPastTwoToThe31ElementsAreRight) {
  ExpectRowsAsInSmallTable(2'900'000, 768, {0, 2'796'202, 2'796'203, 2'899'999},
                           {1, 2'796'201, 2'796'204, 2'899'998});
}

}  // namespace
}  // namespace rowhouse::testing
