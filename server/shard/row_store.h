#ifndef ROWHOUSE_SERVER_SHARD_ROW_STORE_H_
#define ROWHOUSE_SERVER_SHARD_ROW_STORE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Owns the memory of a shard's rows: weights, second moments, last events.
///
/// Thread-compatible. Must not outlive its backend.
class RowStore {
 public:
  /// Allocates the shard's rows and sets them to their start.
  static absl::StatusOr<RowStore> Create(const ShardSpec& spec,
                                         kernels::Backend& backend);

  /// Sets all rows to their start, in fresh memory; the old is freed first, so
  /// the reservation is never exceeded.
  ///
  /// Errors: the backend's; there are no rows then.
  absl::Status Reset();

  const kernels::RowTable& table() const { return table_; }

 private:
  RowStore(const ShardSpec& spec, kernels::Backend& backend);

  kernels::Backend* backend_;
  kernels::Initializer initializer_;
  kernels::RowTable table_;
  kernels::Buffer weights_;
  kernels::Buffer second_moment_;
  kernels::Buffer last_event_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_ROW_STORE_H_
