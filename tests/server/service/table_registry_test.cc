// What a table reserves, also while its trainer count changes.

#include "server/table_registry.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "proto/wire/error.h"
#include "tests/server/shard/failing_backend.h"
#include "tests/server/shard/manual_timer_queue.h"
#include "tests/server/shard/pending.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 sparse {})";

class TableChangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::TableSpec spec;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kSpec, &spec));
    Pending<absl::StatusOr<server::CreatedTable>> created;
    registry_.Create("tables/t", spec, std::make_shared<server::Call>(),
                     created.Callback());
    absl::StatusOr<server::CreatedTable> table = created.Wait();
    ASSERT_THAT(table, IsOk());
    table_ = std::move(table->table);
  }

  int64_t Begin(int32_t trainer_count) {
    const auto wanted = registry_.BeginChange(*table_, trainer_count);
    EXPECT_THAT(wanted, IsOk());
    return wanted.value_or(0);
  }
  void Make(int64_t wanted) { registry_.EndChange(*table_, wanted, true); }
  void GiveUp(int64_t wanted) { registry_.EndChange(*table_, wanted, false); }

  // What the table needs with so many trainers.
  int64_t NeedOf(int32_t trainer_count) {
    server::ShardSpec spec = table_->shard->spec();
    spec.trainer_count = trainer_count;
    return server::Shard::ReservedBytes(spec, {});
  }

  void ExpectReserved(int64_t bytes) {
    EXPECT_EQ(table_->reserved_bytes, bytes);
    EXPECT_EQ(registry_.reserved_bytes(), bytes);
    EXPECT_EQ(backend_.aside_bytes, bytes);
  }

  FailingBackend backend_{
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1))};
  ManualTimerQueue timers_;
  server::TableRegistry registry_{
      {.memory_limit_bytes = int64_t{1} << 40, .limits = {}},
      backend_,
      timers_};
  std::shared_ptr<server::ServedTable> table_;
};

TEST_F(TableChangeTest, OneThatTheDeviceHasNoRoomForChangesNothing) {
  backend_.fail_allocations = true;
  const auto refused = registry_.BeginChange(*table_, 5);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                "tables/t: no memory"));
  EXPECT_EQ(wire::ReasonOf(refused.status()), "MEMORY");
  ExpectReserved(NeedOf(1));
}

TEST_F(TableChangeTest, ATableThatTheDeviceHasNoRoomForIsRefused) {
  v1::TableSpec spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kSpec, &spec));
  for (std::atomic<bool>* fault :
       {&backend_.fail_allocations, &backend_.fail_scratch}) {
    *fault = true;
    Pending<absl::StatusOr<server::CreatedTable>> created;
    registry_.Create("tables/other", spec, std::make_shared<server::Call>(),
                     created.Callback());
    const absl::Status refused = created.Wait().status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(wire::ReasonOf(refused), "MEMORY");
    ExpectReserved(NeedOf(1));
    *fault = false;
  }
}

TEST_F(TableChangeTest, OneThatIsGivenUpLeavesWhatWasThere) {
  const int64_t wanted = Begin(5);
  ExpectReserved(NeedOf(5));
  GiveUp(wanted);
  ExpectReserved(NeedOf(1));
}

TEST_F(TableChangeTest, OneThatIsGivenUpLeavesWhatAnEqualOneNeeds) {
  const int64_t first = Begin(5);
  const int64_t second = Begin(5);
  Make(second);
  GiveUp(first);
  ExpectReserved(NeedOf(5));
}

TEST_F(TableChangeTest, OneThatIsGivenUpLeavesWhatALargerOneNeeds) {
  const int64_t first = Begin(5);
  const int64_t second = Begin(9);
  GiveUp(first);
  ExpectReserved(NeedOf(9));
  Make(second);
  ExpectReserved(NeedOf(9));
}

TEST_F(TableChangeTest, ALargerOneThatIsGivenUpLeavesWhatASmallerOneNeeds) {
  const int64_t larger = Begin(9);
  const int64_t smaller = Begin(5);
  Make(smaller);
  GiveUp(larger);
  ExpectReserved(NeedOf(5));
}

TEST_F(TableChangeTest, FewerTrainersGiveNothingBack) {
  Make(Begin(5));
  Make(Begin(2));
  ExpectReserved(NeedOf(5));
}

TEST_F(TableChangeTest, InAnyOrderTheMostOfWhatIsNeededIsReserved) {
  Random random(20261130);
  SCOPED_TRACE(random.Trace());
  std::vector<int32_t> under_way;
  int32_t made = 1;
  for (int step = 0; step < 2000; ++step) {
    if (under_way.empty() || random.Chance(0.4)) {
      under_way.push_back(static_cast<int32_t>(random.Integer(1, 40)));
      EXPECT_EQ(Begin(under_way.back()), NeedOf(under_way.back()));
    } else {
      const auto ending =
          under_way.begin() +
          random.Integer(0, static_cast<int64_t>(under_way.size()) - 1);
      const bool make = random.Chance(0.05);
      registry_.EndChange(*table_, NeedOf(*ending), make);
      if (make) made = std::max(made, *ending);
      under_way.erase(ending);
    }
    const auto most = std::max_element(under_way.begin(), under_way.end());
    ExpectReserved(
        NeedOf(most == under_way.end() ? made : std::max(made, *most)));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rowhouse::testing
