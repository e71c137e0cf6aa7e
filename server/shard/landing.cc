#include "server/shard/landing.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/backend.h"
#include "kernels/hash.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

// Where rows of a part go that is only compared, a piece at a time.
constexpr int64_t kScratchBytes = 256 << 10;

absl::Status BadOffset(int64_t found, int64_t wanted) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadOffset,
      absl::StrCat("first_row is ", found, "; ", wanted,
                   " rows came before, so it must be ", wanted),
      {{"first_row", absl::StrCat(found)}, {"wanted", absl::StrCat(wanted)}});
}

}  // namespace

Landing::Landing(const LandingShard& shard, LandingPlan plan)
    : shard_(shard),
      plan_(std::move(plan)),
      row_bytes_(shard.spec.dim * kernels::SizeOf(shard.spec.gradient_dtype)) {}

absl::StatusOr<std::unique_ptr<Landing>> Landing::Create(
    const LandingShard& shard, LandingPlan plan) {
  std::unique_ptr<Landing> landing(new Landing(shard, std::move(plan)));
  const int64_t row_count = landing->plan_.header.row_count;
  switch (landing->plan_.mode) {
    case LandingPlan::Mode::kStage: {
      ROWHOUSE_ASSIGN_OR_RETURN(
          landing->staged_,
          StagedPart::Allocate(shard.backend, row_count, landing->row_bytes_));
      break;
    }
    case LandingPlan::Mode::kCompare: {
      if (row_count == 0) break;
      const int64_t rows = std::clamp(kScratchBytes / landing->row_bytes_,
                                      int64_t{1}, row_count);
      ROWHOUSE_ASSIGN_OR_RETURN(
          landing->scratch_,
          shard.backend.AllocateUninitialized(rows * landing->row_bytes_));
      break;
    }
    case LandingPlan::Mode::kIgnore:
      break;
  }
  return landing;
}

Landing::~Landing() {
  if (abandon_ != nullptr) abandon_();
}

PartName Landing::name() const {
  const PartHeader& header = plan_.header;
  return {header.event, header.trainer.trainer_rank, header.part};
}

bool Landing::ids_known() const {
  return plan_.header.handles.empty() || !plan_.handle_slots.empty();
}

absl::Status Landing::Complete() const {
  if (!fault_.ok()) return DeepCopy(fault_);
  if (received_ != plan_.header.row_count) {
    return BadCountError("rows of the part", received_, plan_.header.row_count);
  }
  return absl::OkStatus();
}

PartContent Landing::content() const {
  PartContent content;
  content.row_count = received_;
  if (ids_known()) content.ids = ids_;
  content.rows = rows_;
  content.handles = plan_.header.handles;
  return content;
}

absl::Status Landing::Append(int64_t first_row,
                             std::span<const int64_t> row_ids,
                             const kernels::HostPieces& rows) {
  if (!fault_.ok()) return DeepCopy(fault_);
  absl::Status landed = Land(first_row, row_ids, rows);
  if (landed.ok()) return landed;
  // Nothing will be staged: give the memory back while the caller drains.
  fault_ = DeepCopy(landed);
  staged_ = StagedPart();
  return landed;
}

absl::Status Landing::Land(int64_t first_row, std::span<const int64_t> row_ids,
                           const kernels::HostPieces& rows) {
  const int64_t size_bytes = rows.size_bytes();
  ROWHOUSE_RETURN_IF_ERROR(plan_.ticket->Check());
  ROWHOUSE_RETURN_IF_ERROR(CheckShape(first_row, row_ids, size_bytes));
  const int64_t row_count = size_bytes / row_bytes_;
  if (plan_.mode != LandingPlan::Mode::kIgnore) {
    ROWHOUSE_RETURN_IF_ERROR(FindSlots(row_ids, row_count));
    ROWHOUSE_RETURN_IF_ERROR(LandRows(rows, row_count));
  }
  received_ += row_count;
  return absl::OkStatus();
}

absl::Status Landing::CheckShape(int64_t first_row,
                                 std::span<const int64_t> row_ids,
                                 int64_t size_bytes) const {
  if (first_row != received_) return BadOffset(first_row, received_);
  const int64_t row_count = size_bytes / row_bytes_;
  if (size_bytes % row_bytes_ != 0) {
    return BadShapeError("bytes of whole rows", size_bytes,
                         row_count * row_bytes_);
  }
  if (row_count > plan_.header.row_count - received_) {
    return BadCountError("rows of the part", received_ + row_count,
                         plan_.header.row_count);
  }
  const int64_t wanted = plan_.header.handles.empty() ? row_count : 0;
  const auto found = static_cast<int64_t>(row_ids.size());
  if (found != wanted) return BadShapeError("row ids", found, wanted);
  return absl::OkStatus();
}

absl::Status Landing::FindSlots(std::span<const int64_t> row_ids,
                                int64_t row_count) {
  if (!ids_known()) return absl::OkStatus();
  slots_.resize(static_cast<size_t>(row_count));
  if (plan_.header.handles.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(shard_.range.Resolve(row_ids, received_, slots_));
  } else {
    for (int64_t& slot : slots_) {
      while (handle_position_ == plan_.handle_slots[handle_]->size()) {
        ++handle_;
        handle_position_ = 0;
      }
      slot = (*plan_.handle_slots[handle_])[handle_position_++];
    }
  }
  const int64_t first_row_id = shard_.range.first_row_id();
  for (int64_t i = 0; i < row_count; ++i) {
    ids_ += kernels::IdContent(received_ + i, first_row_id + slots_[i]);
  }
  if (plan_.mode != LandingPlan::Mode::kStage || row_count == 0) {
    return absl::OkStatus();
  }
  return shard_.backend.Copy(slots_.data(), staged_.slots() + received_,
                             row_count * static_cast<int64_t>(sizeof(int64_t)));
}

absl::Status Landing::LandRows(const kernels::HostPieces& rows,
                               int64_t row_count) {
  kernels::PieceReader reader(rows);
  const bool stage = plan_.mode == LandingPlan::Mode::kStage;
  const int64_t step = stage ? row_count : scratch_.size_bytes() / row_bytes_;
  for (int64_t first = 0; first < row_count; first += step) {
    const int64_t count = std::min(step, row_count - first);
    void* to = stage ? staged_.rows() + (received_ + first) * row_bytes_
                     : scratch_.data();
    const auto pieces = reader.Take(count * row_bytes_);
    kernels::RowScan scan;
    ROWHOUSE_RETURN_IF_ERROR(shard_.backend.LandRows(
        kernels::HostPieces(pieces), to, count, shard_.spec.dim,
        shard_.spec.gradient_dtype, received_ + first, rows_, scan));
    ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
    if (scan.non_finite_row != kernels::RowScan::kNone &&
        shard_.spec.policy == kernels::NonFinitePolicy::kReject) {
      return NotFinite(received_ + first + scan.non_finite_row,
                       scan.non_finite_column);
    }
  }
  return absl::OkStatus();
}

absl::Status Landing::NotFinite(int64_t position, int64_t column) const {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kNotFinite,
      absl::StrCat("column ", column, " of the gradient row at position ",
                   position, " is not finite; ", shard_.spec.table,
                   " takes finite gradients only"),
      {{"position", absl::StrCat(position)}, {"column", absl::StrCat(column)}});
}

}  // namespace rowhouse::server
