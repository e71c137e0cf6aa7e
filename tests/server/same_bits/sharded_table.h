#ifndef ROWHOUSE_TESTS_SERVER_SAME_BITS_SHARDED_TABLE_H_
#define ROWHOUSE_TESTS_SERVER_SAME_BITS_SHARDED_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/shard.h"
#include "server/shard/timer_queue.h"
#include "tests/reference/eager_table.h"
#include "tests/server/same_bits/scenario.h"
#include "tests/server/shard/blocking_shard.h"

namespace rowhouse::testing {

/// Where a scenario runs.
struct Layout {
  wire::Placement placement;
  int thread_count = 1;
};

/// A part that is pushed to one shard: the entries of its rows.
struct ShardPart {
  int shard = 0;
  int32_t rank = 0;
  int32_t part = 0;
  std::vector<reference::EagerTable::Entry> entries;
};

/// How a part is pushed.
struct PushStyle {
  int64_t rows_per_message = 1 << 20;
  bool by_handle = false;
};

/// The shards of one table in one process, with a session of every rank.
class ShardedTable {
 public:
  static absl::StatusOr<std::unique_ptr<ShardedTable>> Create(
      const Scenario& scenario, const Layout& layout);

  int shard_count() const { return static_cast<int>(blocking_.size()); }
  BlockingShard& shard(int index) { return blocking_[index]; }

  /// The parts of an event as each shard gets them, empty ones too.
  std::vector<ShardPart> PartsOf(const ScenarioEvent& event) const;

  /// Sets the trainer count from an event on, and opens sessions of ranks that
  /// have none.
  absl::Status SetTrainerCount(int32_t trainer_count, int64_t from_event);
  absl::Status Push(int64_t event, const ShardPart& part,
                    const PushStyle& style);
  absl::Status SealAll(int64_t event, const ScenarioEvent& content);
  absl::Status CommitAll(int64_t event, const ScenarioEvent& content);

  /// The table's digest as of `event`.
  absl::StatusOr<uint64_t> Digest(int64_t event);
  /// All rows, by row id.
  absl::StatusOr<std::vector<std::string>> Rows();

 private:
  ShardedTable(const Scenario& scenario, const Layout& layout);

  // Opens session 1 of the ranks below `end_rank` that have none.
  absl::Status OpenSessions(int32_t end_rank);

  const Scenario& scenario_;
  const Layout layout_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<server::TimerQueue> timers_;
  std::vector<std::unique_ptr<server::Shard>> shards_;
  std::vector<BlockingShard> blocking_;
  int32_t session_count_ = 0;  // Ranks below it have one.
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SAME_BITS_SHARDED_TABLE_H_
