#ifndef ROWHOUSE_SERVER_SHARD_TABLE_STORE_H_
#define ROWHOUSE_SERVER_SHARD_TABLE_STORE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "server/shard/beta2_history.h"
#include "server/shard/events.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// The rows of a shard, and what events do to them: one class a kind of table.
/// Errors are the backend's; a failed write leaves a store not to be used.
///
/// Thread-compatible. Must not outlive its backend.
class TableStore {
 public:
  virtual ~TableStore() = default;

  /// The weights, to be read.
  virtual kernels::RowTable rows() const = 0;

  /// The memory of `rows`; shared memory on a server that offers the one-sided
  /// path.
  virtual const kernels::Buffer& weights() const = 0;

  /// The arrays of `RowColumnsOf` the spec, in its order.
  virtual std::vector<void*> columns() const = 0;

  /// Sets all rows to their start: in place where the weights are shared, else
  /// in fresh memory; the old is freed first, so the reservation is never
  /// exceeded. There are no rows after an error.
  virtual absl::Status Reset() = 0;

  /// Overwrites consecutive weights; `rows` is the backend's memory.
  virtual absl::Status WriteRows(int64_t first_slot, int64_t row_count,
                                 const void* rows) = 0;

  /// Brings the state of distinct rows up to the last event.
  virtual absl::Status BringCurrent(const Beta2History& history,
                                    std::span<const int64_t> slots) = 0;

  /// Sum of the rows' digests, their state as if current.
  virtual absl::StatusOr<uint64_t> Digest(const Beta2History& history) = 0;

  /// Statistics of the next event's merged gradient; all ranks have sealed it.
  virtual absl::StatusOr<kernels::GradientStatistics> Statistics(
      const Events& events) = 0;

  /// Applies the next event, which all ranks have sealed, and returns its beta2
  /// in fp32. `divisor` is W.
  virtual absl::StatusOr<float> Apply(const Events& events,
                                      const EventCommit& commit,
                                      int64_t divisor,
                                      const Beta2History& history,
                                      kernels::EventReport& report) = 0;
};

/// Memory for a store's weights.
inline absl::StatusOr<kernels::Buffer> AllocateWeights(
    kernels::Backend& backend, int64_t size_bytes, bool one_sided) {
  return one_sided ? backend.AllocateShared(size_bytes)
                   : backend.Allocate(size_bytes);
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_TABLE_STORE_H_
