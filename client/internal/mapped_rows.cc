#include "client/internal/mapped_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr auto kIdBytes = static_cast<int64_t>(sizeof(int64_t));

absl::Status CheckFits(const SharedShard& shared) {
  const int64_t row_bytes = shared.dim * kernels::SizeOf(shared.dtype);
  int64_t wanted = 0;
  if (shared.dim >= 1 && shared.row_count >= 1 && shared.first_row_id >= 0 &&
      !__builtin_mul_overflow(shared.row_count, row_bytes, &wanted) &&
      shared.weights.size_bytes >= wanted &&
      shared.epoch.size_bytes >= kIdBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(shared.weights.size_bytes, " bytes of weights and ",
                   shared.epoch.size_bytes, " of an epoch, wanted ",
                   shared.row_count, " rows of ", row_bytes, " bytes and 8"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedRows>> MappedRows::Map(
    std::shared_ptr<kernels::Backend> backend, const SharedShard& shared) {
  ROWHOUSE_RETURN_IF_ERROR(CheckFits(shared));
  std::unique_ptr<MappedRows> rows(new MappedRows(std::move(backend)));
  kernels::Backend& device = *rows->backend_;
  ROWHOUSE_ASSIGN_OR_RETURN(
      rows->weights_, device.Map(shared.weights, kernels::MapAccess::kRead));
  ROWHOUSE_ASSIGN_OR_RETURN(
      rows->epoch_, device.Map(shared.epoch, kernels::MapAccess::kRead));
  if (shared.inbox.has_value()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        rows->inbox_, device.Map(*shared.inbox, kernels::MapAccess::kWrite));
  }
  rows->first_row_id_ = shared.first_row_id;
  rows->end_row_id_ = shared.first_row_id + shared.row_count;
  kernels::RowTable& table = rows->table_;
  table.dim = shared.dim;
  table.dtype = shared.dtype;
  table.row_count = rows->end_row_id_;
  table.weights = reinterpret_cast<void*>(
      reinterpret_cast<uintptr_t>(rows->weights_.data()) -
      static_cast<uintptr_t>(shared.first_row_id * table.row_bytes()));
  return rows;
}

bool MappedRows::Holds(std::span<const int64_t> row_ids) const {
  bool holds = true;
  for (const int64_t id : row_ids) {
    holds &= id >= first_row_id_ && id < end_row_id_;
  }
  return holds;
}

absl::Status MappedRows::Gather(std::span<const int64_t> row_ids, void* out) {
  return backend_->GatherRows(table_, row_ids, out);
}

absl::StatusOr<int64_t> MappedRows::Finish() {
  int64_t epoch = 0;
  ROWHOUSE_RETURN_IF_ERROR(backend_->LoadEpoch(epoch_.as<int64_t>(), epoch));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return epoch;
}

absl::StatusOr<std::optional<InboxPlace>> MappedRows::Put(
    const RowSelection& selection, bool with_ids, const std::byte* rows,
    int64_t row_bytes) {
  constexpr int64_t kAlignment = 256;
  const int64_t count = selection.size();
  const int64_t ids_bytes = with_ids ? count * kIdBytes : 0;
  const int64_t rows_offset =
      (ids_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (count > (inbox_.size_bytes() - rows_offset) / row_bytes) {
    return std::nullopt;
  }
  auto* const inbox = inbox_.as<std::byte>();
  if (with_ids) {
    ROWHOUSE_RETURN_IF_ERROR(
        backend_->Copy(selection.row_ids.data(), inbox, ids_bytes));
  }
  std::vector<std::byte> together;  // Rows that are not one run.
  const std::byte* from = rows + selection.first_position * row_bytes;
  if (!selection.positions.empty()) {
    together.resize(static_cast<size_t>(count * row_bytes));
    selection.Gather(rows, row_bytes, 0, count, together.data());
    from = together.data();
  }
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->Copy(from, inbox + rows_offset, count * row_bytes));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return InboxPlace{0, rows_offset};
}

absl::Status MappedRows::Write(int64_t offset,
                               std::span<const std::byte> from) {
  ROWHOUSE_RETURN_IF_ERROR(backend_->Copy(
      from.data(), inbox_.as<std::byte>() + offset, std::ssize(from)));
  return backend_->Synchronize();
}

absl::Status MappedRows::Read(int64_t offset, std::span<std::byte> to) {
  ROWHOUSE_RETURN_IF_ERROR(backend_->Copy(inbox_.as<std::byte>() + offset,
                                          to.data(), std::ssize(to)));
  return backend_->Synchronize();
}

}  // namespace rowhouse::client::internal
