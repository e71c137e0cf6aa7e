#ifndef ROWHOUSE_SERVER_SHARD_HANDLES_H_
#define ROWHOUSE_SERVER_SHARD_HANDLES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::server {

/// Slots that several owners read; never changed.
using SharedSlots = std::shared_ptr<const std::vector<int64_t>>;

/// Lists of rows that trainers pulled and may name again by a number.
///
/// Thread-compatible.
class Handles {
 public:
  /// Numbers start after a random one, so that a restarted server does not
  /// give out the numbers of its earlier life.
  explicit Handles(int64_t max_row_count_per_rank);

  /// Keeps `slots` for `trainer_rank` and returns their handle, above 0. The
  /// rank's oldest handles go until all fit; 0 when these alone do not.
  int64_t Add(int32_t trainer_rank, SharedSlots slots);

  /// Errors:
  ///   kFailedPrecondition  HANDLE_GONE: unknown, expired or another rank's.
  absl::StatusOr<SharedSlots> Find(int32_t trainer_rank, int64_t handle) const;

  /// Expires all.
  void Clear();

 private:
  struct Entry {
    int64_t handle = 0;
    SharedSlots slots;
  };
  struct Kept {
    std::deque<Entry> entries;  // Oldest first; handles ascend, as a rule.
    int64_t row_count = 0;
  };

  int64_t NextHandle();

  const int64_t max_row_count_per_rank_;
  uint64_t last_;
  std::map<int32_t, Kept> kept_;  // By rank.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HANDLES_H_
