// Promise P1: a table's bits depend only on its initial bits and on what was
// contributed and committed; not on shards, arrival, messages, handles or
// threads. The oracle is tests/reference/eager_table.h.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/same_bits/scenario.h"
#include "tests/server/same_bits/sharded_table.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

// `--full` sets ROWHOUSE_ALL_SEEDS.
int Cases(int quick, int all) {
  return std::getenv("ROWHOUSE_ALL_SEEDS") == nullptr ? quick : all;
}

// Bounds of `shard_count` shards of any size, empty ones too.
wire::Placement UnevenPlacement(Random& random, int64_t row_count,
                                int32_t shard_count) {
  std::vector<int64_t> bounds = {0, row_count};
  while (static_cast<int32_t>(bounds.size()) <= shard_count) {
    bounds.push_back(random.Integer(0, row_count));
  }
  std::sort(bounds.begin(), bounds.end());
  return *wire::Placement::Explicit(row_count, bounds);
}

// Pushes an event's parts in this order.
void PushAll(ShardedTable& table, int64_t event,
             const std::vector<ShardPart>& parts, Random& random) {
  for (const ShardPart& part : parts) {
    const PushStyle style{random.Integer(1, 12), random.Chance(0.4)};
    ASSERT_THAT(table.Push(event, part, style), IsOk());
    if (random.Chance(0.15)) {  // A repeated push counts once.
      ASSERT_THAT(table.Push(event, part, {random.Integer(1, 12)}), IsOk());
    }
  }
}

// Before event `event` is pushed: changes the trainer count of the first event
// that still can be, where the scenario says so.
absl::Status ChangeTrainers(ShardedTable& table, const Scenario& scenario,
                            int64_t event) {
  const auto from_event = static_cast<size_t>(event + 2);
  if (from_event > scenario.events.size()) return absl::OkStatus();
  const int32_t count = scenario.events[from_event - 1].trainer_count;
  if (count == scenario.events[from_event - 2].trainer_count) {
    return absl::OkStatus();
  }
  return table.SetTrainerCount(count, event + 2);
}

// Runs a scenario with its parts shuffled, some of them an event early, and
// compares all bits with the oracle's.
void ExpectOracleBits(const Scenario& scenario, const Layout& layout,
                      Random& random) {
  auto created = ShardedTable::Create(scenario, layout);
  ASSERT_THAT(created, IsOk());
  ShardedTable& table = **created;
  std::vector<ShardPart> next = table.PartsOf(scenario.events[0]);
  for (size_t i = 0; i < scenario.events.size(); ++i) {
    const auto event = static_cast<int64_t>(i) + 1;
    ASSERT_THAT(ChangeTrainers(table, scenario, event), IsOk());
    std::shuffle(next.begin(), next.end(), random.engine());
    ASSERT_NO_FATAL_FAILURE(PushAll(table, event, next, random));
    next.clear();
    if (i + 1 < scenario.events.size()) {
      next = table.PartsOf(scenario.events[i + 1]);
      std::shuffle(next.begin(), next.end(), random.engine());
      const auto early = static_cast<size_t>(
          random.Integer(0, static_cast<int64_t>(next.size())));
      const std::vector<ShardPart> first(next.end() - early, next.end());
      ASSERT_NO_FATAL_FAILURE(PushAll(table, event + 1, first, random));
      next.resize(next.size() - early);
    }
    ASSERT_THAT(table.SealAll(event, scenario.events[i]), IsOk());
    ASSERT_THAT(table.CommitAll(event, scenario.events[i]), IsOk());
    const absl::StatusOr<uint64_t> digest = table.Digest(event);
    ASSERT_THAT(digest, IsOk());
    ASSERT_EQ(*digest, scenario.digests[i]) << "after event " << event;
  }
  const auto rows = table.Rows();
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(*rows, scenario.rows);
}

// Whether a sum in another order than the canonical one would show: the oracle
// gives other bits when the entries come in reverse order of parts.
bool OrderShows(const Scenario& scenario) {
  ScenarioEvent reversed = scenario.events[0];
  if (reversed.skip || scenario.row_count == 0) return false;
  reversed.contributions.clear();
  for (const auto& [name, entries] : scenario.events[0].contributions) {
    reversed.contributions[{-name.first, -name.second}] = entries;
  }
  reference::EagerTable oracle = MakeOracle(scenario);
  ApplyToOracle(scenario, reversed, oracle);
  return oracle.Digest() != scenario.digests[0];
}

TEST(SameBits, AnyNumberAndSizeOfShardsGivesTheOraclesBits) {
  Random random(20261129);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < Cases(40, 1000); ++i) {
    const Scenario scenario = RandomScenario(random, {});
    for (const int32_t shards : {1, 2, 3, 5, 8}) {
      SCOPED_TRACE(::testing::Message() << "case " << i << ", " << shards);
      const auto even = wire::Placement::Even(scenario.row_count, shards);
      ASSERT_NO_FATAL_FAILURE(ExpectOracleBits(scenario, {even, 1}, random));
      const auto uneven = UnevenPlacement(random, scenario.row_count, shards);
      ASSERT_NO_FATAL_FAILURE(ExpectOracleBits(scenario, {uneven, 1}, random));
    }
  }
}

TEST(SameBits, AnyNumberOfThreadsGivesTheOraclesBits) {
  Random random(20261130);
  SCOPED_TRACE(random.Trace());
  // Enough entries that loops are really cut.
  const ScenarioSize size{
      .most_rows = 3000, .most_events = 2, .most_entries = 2000};
  for (int i = 0; i < Cases(4, 40); ++i) {
    Scenario scenario = RandomScenario(random, size);
    while (!OrderShows(scenario)) scenario = RandomScenario(random, size);
    for (const int threads : {1, 2, 8}) {
      SCOPED_TRACE(::testing::Message() << "case " << i << ", " << threads);
      const auto placement = wire::Placement::Even(scenario.row_count, 2);
      ASSERT_NO_FATAL_FAILURE(
          ExpectOracleBits(scenario, {placement, threads}, random));
    }
  }
}

// One event, its parts pushed to one shard in `order`.
void ExpectOracleBitsInOrder(const Scenario& scenario,
                             const std::vector<int>& order) {
  const Layout layout{wire::Placement::Even(scenario.row_count, 1), 1};
  auto created = ShardedTable::Create(scenario, layout);
  ASSERT_THAT(created, IsOk());
  ShardedTable& table = **created;
  const std::vector<ShardPart> parts = table.PartsOf(scenario.events[0]);
  for (const int i : order) {
    ASSERT_THAT(table.Push(1, parts[i], {.rows_per_message = 7}), IsOk());
  }
  ASSERT_THAT(table.SealAll(1, scenario.events[0]), IsOk());
  ASSERT_THAT(table.CommitAll(1, scenario.events[0]), IsOk());
  const absl::StatusOr<uint64_t> digest = table.Digest(1);
  ASSERT_THAT(digest, IsOk());
  ASSERT_EQ(*digest, scenario.digests[0]);
}

int PartCount(const Scenario& scenario) {
  return static_cast<int>(scenario.events[0].contributions.size());
}

Scenario ScenarioOfParts(Random& random, int least, int most) {
  const ScenarioSize size{.most_rows = 12, .most_events = 1, .most_parts = 3};
  while (true) {
    Scenario scenario = RandomScenario(random, size);
    const int count = PartCount(scenario);
    if (least <= count && count <= most) return scenario;
  }
}

Scenario OrderedScenario(Random& random, int least, int most) {
  while (true) {
    Scenario scenario = ScenarioOfParts(random, least, most);
    if (OrderShows(scenario)) return scenario;
  }
}

TEST(SameBits, EveryArrivalOrderOfUpToFivePartsGivesTheOraclesBits) {
  Random random(20261201);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < Cases(4, 40); ++i) {
    const Scenario scenario = OrderedScenario(random, 3, 5);
    std::vector<int> order(static_cast<size_t>(PartCount(scenario)));
    std::iota(order.begin(), order.end(), 0);
    do {
      SCOPED_TRACE(::testing::PrintToString(order));
      ASSERT_NO_FATAL_FAILURE(ExpectOracleBitsInOrder(scenario, order));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(SameBits, TwoHundredArrivalOrdersOfMorePartsGiveTheOraclesBits) {
  Random random(20261202);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < Cases(2, 20); ++i) {
    const Scenario scenario = OrderedScenario(random, 6, 12);
    std::vector<int> order(static_cast<size_t>(PartCount(scenario)));
    std::iota(order.begin(), order.end(), 0);
    for (int k = 0; k < 200; ++k) {
      std::shuffle(order.begin(), order.end(), random.engine());
      SCOPED_TRACE(::testing::PrintToString(order));
      ASSERT_NO_FATAL_FAILURE(ExpectOracleBitsInOrder(scenario, order));
    }
  }
}

TEST(SameBits, ScenariosCoverMoreAndFewerTrainers) {
  Random random(20261129);
  SCOPED_TRACE(random.Trace());
  int64_t more = 0;
  int64_t fewer = 0;
  for (int i = 0; i < 40; ++i) {
    const Scenario scenario = RandomScenario(random, {});
    for (size_t k = 1; k < scenario.events.size(); ++k) {
      const int32_t before = scenario.events[k - 1].trainer_count;
      const int32_t after = scenario.events[k].trainer_count;
      if (after > before) ++more;
      if (after < before) ++fewer;
    }
  }
  EXPECT_GT(more, 0);
  EXPECT_GT(fewer, 0);
}

TEST(SameBits, ScenariosCoverRowsThatUpdatesMustLeave) {
  Random random(20261129);
  SCOPED_TRACE(random.Trace());
  int64_t kept = 0;
  int64_t skipped = 0;
  for (int i = 0; i < 40; ++i) {
    const Scenario scenario = RandomScenario(random, {});
    kept += scenario.kept_row_count;
    for (const ScenarioEvent& event : scenario.events) skipped += event.skip;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(skipped, 0);
}

// Rows that are first touched again after thousands of events.
TEST(SameBits, LazyDecayOverThousandsOfEventsGivesTheOraclesBits) {
  Random random(20261203);
  SCOPED_TRACE(random.Trace());
  Scenario scenario = ScenarioOfParts(random, 2, 5);
  while (scenario.events[0].skip || scenario.row_count == 0) {
    scenario = ScenarioOfParts(random, 2, 5);
  }
  const ScenarioEvent touched = scenario.events[0];
  reference::EagerTable oracle = MakeOracle(scenario);
  const Layout layout{wire::Placement::Even(scenario.row_count, 2), 1};
  auto created = ShardedTable::Create(scenario, layout);
  ASSERT_THAT(created, IsOk());
  ShardedTable& table = **created;
  // By event 3000 every second moment has come to its subnormal fixpoint.
  for (int64_t event = 1; event <= 3001; ++event) {
    ScenarioEvent content;
    content.trainer_count = touched.trainer_count;
    content.scalars = touched.scalars;
    content.scalars.beta2 = event % 3 == 0 ? 0.9025 : 0.95;
    if (event == 1 || event == 3001) {
      content.contributions = touched.contributions;
      ASSERT_NO_FATAL_FAILURE(
          PushAll(table, event, table.PartsOf(content), random));
    }
    ASSERT_THAT(table.SealAll(event, content), IsOk());
    ASSERT_THAT(table.CommitAll(event, content), IsOk());
    ApplyToOracle(scenario, content, oracle);
    if (event == 1 || event == 500 || event >= 3000) {
      const absl::StatusOr<uint64_t> digest = table.Digest(event);
      ASSERT_THAT(digest, IsOk());
      ASSERT_EQ(*digest, oracle.Digest()) << "after event " << event;
    }
  }
}

}  // namespace
}  // namespace rowhouse::testing
