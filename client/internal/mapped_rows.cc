#include "client/internal/mapped_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/internal/part_rows.h"
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

absl::Status MappedRows::Gather(std::span<const int64_t> row_ids, void* out) {
  return backend_->GatherRows(table_, row_ids, out);
}

absl::Status MappedRows::GatherTo(std::span<const int64_t> row_ids,
                                  std::span<const int64_t> positions,
                                  void* out) {
  return backend_->GatherRowsTo(table_, row_ids, positions, out);
}

absl::StatusOr<int64_t> MappedRows::Finish() {
  int64_t epoch = 0;
  ROWHOUSE_RETURN_IF_ERROR(backend_->LoadEpoch(epoch_.as<int64_t>(), epoch));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return epoch;
}

absl::StatusOr<std::optional<InboxPlace>> MappedRows::Put(
    const PushCall& part) {
  constexpr int64_t kAlignment = 256;
  const int64_t count = part.selection->size();
  const int64_t ids_bytes = part.handles.empty() ? count * kIdBytes : 0;
  const int64_t rows_offset =
      (ids_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (count > (inbox_.size_bytes() - rows_offset) / part.row_bytes) {
    return std::nullopt;
  }
  auto* const inbox = inbox_.as<std::byte>();
  const int64_t* const ids = IsOn(part.device) && !part.device_row_ids.empty()
                                 ? part.device_row_ids.data()
                                 : part.selection->row_ids.data();
  ROWHOUSE_RETURN_IF_ERROR(backend_->Copy(ids, inbox, ids_bytes));
  ROWHOUSE_RETURN_IF_ERROR(PutRows(part, inbox + rows_offset));
  return InboxPlace{0, rows_offset};
}

absl::Status MappedRows::PutRows(const PushCall& part, std::byte* to) {
  const RowSelection& selection = *part.selection;
  const int64_t size_bytes = selection.size() * part.row_bytes;
  std::vector<std::byte> together;
  if (IsOn(part.device) && !selection.positions.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(
        backend_->GatherRows(BufferOf(part), part.positions, to));
    return backend_->Synchronize();
  }
  const std::byte* from = part.rows + selection.first_position * part.row_bytes;
  const bool can_copy = IsOn(part.device) || part.device == nullptr;
  if (!can_copy || !selection.positions.empty()) {
    together.resize(static_cast<size_t>(size_bytes));
    const absl::Status gathered =
        GatherPart(part, 0, selection.size(), together.data());
    // The rows are to come before `together` goes.
    const absl::Status done =
        can_copy ? absl::OkStatus() : part.device->Synchronize();
    ROWHOUSE_RETURN_IF_ERROR(gathered);
    ROWHOUSE_RETURN_IF_ERROR(done);
    from = together.data();
  }
  ROWHOUSE_RETURN_IF_ERROR(backend_->Copy(from, to, size_bytes));
  return backend_->Synchronize();
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
