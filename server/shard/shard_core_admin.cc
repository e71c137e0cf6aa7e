// Imports, trainer counts, resets.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::StatusOr<int64_t> ShardCore::Import(int64_t first_row_id,
                                          int64_t row_count,
                                          std::string_view rows) {
  if (events_.applied() != 0) {
    return EventPastError("rows are imported before event", 1,
                          events_.applied());
  }
  // Weights stay as they are while head calls go through their phases and
  // their weight gradients wait to be folded.
  if (!head_calls_.empty() || events_.HasHeadParts()) {
    return wire::Error(absl::StatusCode::kFailedPrecondition,
                       wire::reasons::kImportLate,
                       absl::StrCat("rows of ", spec_.table,
                                    " are imported before its first head call"),
                       {{"table", spec_.table}});
  }
  const int64_t row_bytes = store_->rows().row_bytes();
  const int64_t most = spec_.max_pull_bytes / row_bytes;
  if (row_count < 0 || row_count > most) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadCount,
        absl::StrCat("the import has ", row_count, " rows; it must have 0 to ",
                     most, " (max_pull_bytes)"),
        {{"row_count", absl::StrCat(row_count)},
         {"limit", "max_pull_bytes"},
         {"value", absl::StrCat(most)}});
  }
  if (static_cast<int64_t>(rows.size()) != row_count * row_bytes) {
    return BadShapeError("bytes of the import",
                         static_cast<int64_t>(rows.size()),
                         row_count * row_bytes);
  }
  ROWHOUSE_RETURN_IF_ERROR(range_.CheckRange(first_row_id, row_count));
  if (row_count == 0) return 0;
  kernels::Buffer landed;
  ROWHOUSE_RETURN_IF_ERROR(LandImport(first_row_id, row_count, rows, landed));
  pulls_.Save(store_->rows());
  ROWHOUSE_RETURN_IF_ERROR(BeginWrite());
  const absl::Status written = store_->WriteRows(
      first_row_id - range_.first_row_id(), row_count, landed.data());
  if (!written.ok()) Break(written);
  ROWHOUSE_RETURN_IF_ERROR(Usable());
  const absl::Status rewritten = RewrittenError("rows were imported into ");
  recordings_.EndAll(rewritten);
  // One that is yet to be cut has all rows, but with a base it would lack
  // these: they have no event.
  if (snapshot_ != nullptr &&
      (snapshot_->rows != nullptr || snapshot_->base_event.has_value())) {
    EndSnapshot(rewritten);
  }
  bases_.clear();
  return row_count;
}

absl::Status ShardCore::LandImport(int64_t first_row_id, int64_t row_count,
                                   std::string_view rows,
                                   kernels::Buffer& landed) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      landed, backend_.Allocate(static_cast<int64_t>(rows.size())));
  kernels::ContentSum content;
  kernels::RowScan scan;
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.LandRows(rows.data(), landed.data(), row_count, spec_.dim,
                        spec_.row_dtype, 0, content, scan));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  if (scan.non_finite_row == kernels::RowScan::kNone ||
      spec_.policy == kernels::NonFinitePolicy::kPropagate) {
    return absl::OkStatus();
  }
  const int64_t row_id = first_row_id + scan.non_finite_row;
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kNotFinite,
      absl::StrCat("column ", scan.non_finite_column, " of row ", row_id,
                   " is not finite; ", spec_.table, " takes finite rows only"),
      {{"row_id", absl::StrCat(row_id)},
       {"column", absl::StrCat(scan.non_finite_column)}});
}

absl::StatusOr<ShardInfo> ShardCore::SetTrainerCount(
    const TrainerCountChange& change) {
  ShardSpec changed = spec_;
  changed.trainer_count = std::max(changed.trainer_count, change.trainer_count);
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.ReserveScratch(Shard::ScratchNeeds(changed, limits_)));
  ROWHOUSE_RETURN_IF_ERROR(
      events_.trainer_counts().Set(change, events_.applied()));
  return GetInfo();
}

absl::StatusOr<ShardInfo> ShardCore::Reset() {
  pulls_.Save(store_->rows());
  absl::StatusOr<Beta2History> history = Beta2History::Create(backend_);
  if (!history.ok()) return std::move(history).status();
  ROWHOUSE_RETURN_IF_ERROR(BeginWrite());
  const absl::Status reset = store_->Reset();
  if (!reset.ok()) {
    Break(reset);
    return Usable();
  }
  ForgetLife(RewrittenError("there was a reset of "));
  history_ = *std::move(history);
  events_.Reset(spec_.trainer_count);
  restoration_ = {};
  not_restored_ = absl::OkStatus();
  return GetInfo();
}

void ShardCore::ForgetLife(const absl::Status& reason) {
  ledger_.Clear();
  landings_.FenceAll();
  head_calls_.FenceAll();
  handles_.Clear();
  sessions_.CloseAll();
  recordings_.EndAll(reason);
  EndSnapshot(reason);
  bases_.clear();
  waits_may_end_ = true;
}

}  // namespace rowhouse::server
