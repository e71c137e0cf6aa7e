// Restorations: rows and their state from elsewhere.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

constexpr size_t kStateColumn = 1;  // Of a sparse table.

absl::Status Unlike(std::string_view what) {
  return wire::Error(absl::StatusCode::kDataLoss, wire::reasons::kDamaged,
                     what);
}

absl::Status NotRestoredError(const std::string& table, const char* why) {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kNotRestored, absl::StrCat(table, " ", why),
                     {{"table", table}});
}

absl::Status CheckState(const ShardState& state) {
  if (state.event < 0 ||
      static_cast<int64_t>(state.beta2.size()) != state.event) {
    return Unlike(absl::StrCat("the state is of event ", state.event,
                               " and has ", state.beta2.size(),
                               " values of beta2; it must have one an event"));
  }
  for (size_t i = 0; i < state.beta2.size(); ++i) {
    if (state.beta2[i] >= 0.0F && state.beta2[i] <= 1.0F) continue;
    return Unlike(absl::StrCat("beta2 of event ", i + 1, " is ", state.beta2[i],
                               "; it must be in [0, 1]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ShardCore::BeginRestoration(std::string name,
                                                    const ShardState& state) {
  ROWHOUSE_RETURN_IF_ERROR(CheckState(state));
  absl::StatusOr<TrainerCounts> counts =
      TrainerCounts::Of(state.trainer_counts);
  if (!counts.ok()) return Unlike(std::string(counts.status().message()));
  ROWHOUSE_ASSIGN_OR_RETURN(Beta2History history,
                            Beta2History::Create(backend_));
  for (const float beta2 : state.beta2) {
    ROWHOUSE_RETURN_IF_ERROR(history.Append(beta2));
  }
  ShardSpec widened = spec_;
  widened.trainer_count = counts->MostFrom(1);
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.ReserveScratch(Shard::ScratchNeeds(widened, limits_)));
  pulls_.Save(store_->rows());
  ROWHOUSE_RETURN_IF_ERROR(CloseWindows());
  DropFolds();
  ROWHOUSE_RETURN_IF_ERROR(Usable());
  not_restored_ = NotRestoredError(spec_.table, "is being restored");
  ForgetLife(RewrittenError("there was a restoration of "));
  history_ = std::move(history);
  events_.Restore(state.event, *std::move(counts));
  restoration_ = {++last_restoration_, std::move(name), state.event, 0};
  return restoration_.number;
}

absl::Status ShardCore::CheckRestoration(int64_t restoration) const {
  ROWHOUSE_RETURN_IF_ERROR(Usable());
  if (restoration_.number == restoration) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("another restoration of ", spec_.table, " has begun"));
}

absl::Status ShardCore::CheckLastEvents(
    int64_t first_slot, std::span<const std::byte> states) const {
  for (size_t i = 0; i < states.size() / sizeof(kernels::RowState); ++i) {
    kernels::RowState state;
    std::memcpy(&state, states.data() + i * sizeof(state), sizeof(state));
    if (state.last_event >= 0 && state.last_event <= restoration_.event) {
      continue;
    }
    return Unlike(absl::StrCat(
        "row ", range_.first_row_id() + first_slot + static_cast<int64_t>(i),
        " was updated by event ", state.last_event, "; it must be one of 0 to ",
        restoration_.event));
  }
  return absl::OkStatus();
}

absl::Status ShardCore::WriteRestored(
    int64_t restoration, int64_t first_slot, int64_t row_count,
    std::span<const std::span<const std::byte>> columns) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRestoration(restoration));
  const std::vector<RowColumn> wanted = RowColumnsOf(spec_);
  if (first_slot != restoration_.row_count || row_count < 0 ||
      row_count > store_->rows().row_count - first_slot) {
    return absl::InternalError(
        absl::StrCat("rows from slot ", first_slot, " on are to be restored, ",
                     row_count, " of them; slot ", restoration_.row_count,
                     " of ", store_->rows().row_count, " is next"));
  }
  if (dense_ == nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(
        CheckLastEvents(first_slot, columns[kStateColumn]));
  }
  const std::vector<void*> to = store_->columns();
  for (size_t c = 0; c < to.size(); ++c) {
    ROWHOUSE_RETURN_IF_ERROR(backend_.Copy(
        columns[c].data(),
        static_cast<char*>(to[c]) + first_slot * wanted[c].row_bytes,
        row_count * wanted[c].row_bytes));
  }
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  restoration_.row_count += row_count;
  return absl::OkStatus();
}

absl::Status ShardCore::FinishRestoration(int64_t restoration) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRestoration(restoration));
  if (restoration_.row_count != store_->rows().row_count) {
    return absl::InternalError(
        absl::StrCat(restoration_.row_count, " of ", store_->rows().row_count,
                     " rows of ", spec_.table, " have been restored"));
  }
  bases_[restoration_.name] = restoration_.event;
  restoration_ = {};
  not_restored_ = absl::OkStatus();
  waits_may_end_ = true;
  return absl::OkStatus();
}

void ShardCore::AbandonRestoration(int64_t restoration) {
  if (restoration_.number != restoration) return;
  restoration_ = {};
  not_restored_ =
      NotRestoredError(spec_.table, "was being restored, and that failed");
}

}  // namespace rowhouse::server
