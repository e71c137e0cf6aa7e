#include "client/internal/row_split.h"

#include <utility>

#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

absl::StatusOr<std::shared_ptr<const RowSplit>> RowSplit::Make(
    const wire::Placement& placement, std::span<const int64_t> row_ids) {
  return MakeOn(nullptr, placement, row_ids);
}

absl::StatusOr<std::shared_ptr<const RowSplit>> RowSplit::MakeOn(
    std::shared_ptr<kernels::Backend> device, const wire::Placement& placement,
    std::span<const int64_t> row_ids) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<RowSelection> selections,
                            SplitRows(placement, row_ids));
  const std::shared_ptr<RowSplit> split(
      new RowSplit(std::ssize(row_ids), std::move(selections)));
  if (device != nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(split->CopyTo(std::move(device)));
  }
  return split;
}

absl::Status RowSplit::CopyTo(std::shared_ptr<kernels::Backend> device) {
  constexpr auto kIdBytes = static_cast<int64_t>(sizeof(int64_t));
  device_ = std::move(device);
  // An id and a position a row, at most.
  ROWHOUSE_ASSIGN_OR_RETURN(
      memory_, device_->AllocateUninitialized(2 * row_count_ * kIdBytes));
  auto* to = memory_.as<int64_t>();
  absl::Status copied = absl::OkStatus();
  const auto copy = [&](const std::vector<int64_t>& values) {
    const auto count = std::ssize(values);
    copied.Update(device_->Copy(values.data(), to, count * kIdBytes));
    const std::span<const int64_t> copy_of(to, values.size());
    to += count;
    return copy_of;
  };
  for (const RowSelection& selection : selections_) {
    const std::span<const int64_t> row_ids = copy(selection.row_ids);
    on_device_.push_back({row_ids, copy(selection.positions)});
  }
  copied.Update(device_->Synchronize());
  return copied;
}

}  // namespace rowhouse::client::internal
