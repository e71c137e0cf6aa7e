#ifndef ROWHOUSE_SERVER_SHARD_SPARSE_STORE_H_
#define ROWHOUSE_SERVER_SHARD_SPARSE_STORE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/shard.h"
#include "server/shard/table_store.h"

namespace rowhouse::server {

/// The rows of a sparse table: weights, second moments, last events. Parts wait
/// until their event, which merges and applies them at once.
class SparseStore final : public TableStore {
 public:
  /// Without rows: `Reset` makes them.
  SparseStore(const ShardSpec& spec, const ShardLimits& limits,
              kernels::Backend& backend);

  kernels::RowTable rows() const override { return table_; }
  const kernels::Buffer& weights() const override { return weights_; }
  std::vector<void*> columns() const override {
    return {table_.weights, table_.states};
  }
  absl::Status Reset() override;
  absl::Status WriteRows(int64_t first_slot, int64_t row_count,
                         const void* rows) override;
  absl::Status BringCurrent(const Beta2History& history,
                            std::span<const int64_t> slots) override;
  absl::StatusOr<uint64_t> Digest(const Beta2History& history) override;
  absl::StatusOr<kernels::GradientStatistics> Statistics(
      const Events& events) override;
  absl::StatusOr<float> Apply(const Events& events, const EventCommit& commit,
                              int64_t divisor, const Beta2History& history,
                              kernels::EventReport& report) override;

 private:
  absl::Status AllocateArrays();

  const ShardSpec& spec_;
  const bool one_sided_;
  kernels::Backend& backend_;
  kernels::RowTable table_;
  kernels::Buffer weights_;
  kernels::Buffer states_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SPARSE_STORE_H_
