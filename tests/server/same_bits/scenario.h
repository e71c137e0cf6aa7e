#ifndef ROWHOUSE_TESTS_SERVER_SAME_BITS_SCENARIO_H_
#define ROWHOUSE_TESTS_SERVER_SAME_BITS_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/row_table.h"
#include "server/shard/shard.h"
#include "tests/reference/eager_table.h"
#include "tests/testing/random.h"

namespace rowhouse::testing {

/// One event of a scenario.
struct ScenarioEvent {
  int32_t trainer_count = 1;
  bool skip = false;
  kernels::RowAdamScalars scalars;
  reference::EagerTable::Contributions contributions;

  /// Parts of a rank: its highest number plus 1.
  int32_t PartCount(int32_t rank) const;
};

/// A whole training: what trainers contribute, event by event, and the bits
/// that the oracle says must come of it.
struct Scenario {
  /// Its placement and shard index are a layout's. Its trainer count is that
  /// of the first events; later ones may have others.
  server::ShardSpec spec{.table = "tables/t",
                         .placement = wire::Placement::Even(0, 1),
                         .initializer = {}};
  int64_t row_count = 0;
  std::vector<ScenarioEvent> events;
  std::vector<uint64_t> digests;  ///< After each event.
  std::vector<std::string> rows;  ///< After the last event, by row id.
  int64_t kept_row_count = 0;     ///< Rows that updates left as they were.
};

/// What a random scenario may hold.
struct ScenarioSize {
  int64_t most_rows = 60;
  int most_trainers = 4;
  int most_events = 6;
  int most_parts = 3;         ///< Of one trainer in one event.
  int64_t most_entries = 40;  ///< Of one part.
};

/// The oracle of a scenario's table, at event 0.
reference::EagerTable MakeOracle(const Scenario& scenario);

/// Applies one event to the oracle.
void ApplyToOracle(const Scenario& scenario, const ScenarioEvent& event,
                   reference::EagerTable& oracle);

/// Draws a scenario and lets the oracle run it.
Scenario RandomScenario(Random& random, const ScenarioSize& size);

/// The bytes of `values` in the wire type.
std::string ToBytes(const std::vector<float>& values, kernels::DType dtype);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SAME_BITS_SCENARIO_H_
