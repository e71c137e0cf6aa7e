#ifndef ROWHOUSE_CLIENT_INTERNAL_ROW_SPLIT_H_
#define ROWHOUSE_CLIENT_INTERNAL_ROW_SPLIT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/row_selection.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "proto/wire/placement.h"

namespace rowhouse::client::internal {

/// What a `RowSelection` has, in a device's memory; the positions are empty
/// where they are there.
struct DeviceSelection {
  std::span<const int64_t> row_ids;
  std::span<const int64_t> positions;
};

/// Row ids, split over the shards of a table.
///
/// Thread-safe: never changes.
class RowSplit {
 public:
  /// Splits ids of the host's memory.
  ///
  /// Errors: those of `SplitRows`.
  static absl::StatusOr<std::shared_ptr<const RowSplit>> Make(
      const wire::Placement& placement, std::span<const int64_t> row_ids);

  /// The same, with a copy in the memory of `device`.
  ///
  /// Errors: also those of the device.
  static absl::StatusOr<std::shared_ptr<const RowSplit>> MakeOn(
      std::shared_ptr<kernels::Backend> device,
      const wire::Placement& placement, std::span<const int64_t> row_ids);

  int64_t row_count() const { return row_count_; }
  /// By shard.
  const std::vector<RowSelection>& selections() const { return selections_; }
  /// Empty where there is no copy in the memory of `device`, or that is null.
  DeviceSelection on(const kernels::Backend* device, int32_t shard) const {
    if (device == nullptr || device != device_.get()) return {};
    return on_device_[shard];
  }

 private:
  RowSplit(int64_t row_count, std::vector<RowSelection> selections)
      : row_count_(row_count), selections_(std::move(selections)) {}

  absl::Status CopyTo(std::shared_ptr<kernels::Backend> device);

  const int64_t row_count_;
  const std::vector<RowSelection> selections_;
  std::shared_ptr<kernels::Backend> device_;
  kernels::Buffer memory_;  // After its backend.
  std::vector<DeviceSelection> on_device_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_ROW_SPLIT_H_
