#include "server/shard/pulls.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/backend.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::StatusOr<int64_t> Pulls::Add(const std::optional<TrainerSession>& trainer,
                                   SharedSlots slots, bool training) {
  const auto count = std::count_if(
      pulls_.begin(), pulls_.end(),
      [&](const auto& entry) { return entry.second.trainer == trainer; });
  const int32_t most =
      trainer.has_value() ? kMostPerSession : max_anonymous_count_;
  if (count >= most) {
    return wire::Error(
        absl::StatusCode::kResourceExhausted, wire::reasons::kPullsOpen,
        absl::StrCat(
            count, " pulls are open ",
            trainer.has_value() ? "in this session" : "outside sessions",
            "; at most ", most, " may be"),
        {{"limit", trainer.has_value() ? "pulls of a session"
                                       : "max_anonymous_pull_count"},
         {"value", absl::StrCat(most)}},
        kRetryDelay);
  }
  Place& place = pulls_[++last_pull_];
  place.trainer = trainer;
  place.slots = std::move(slots);
  place.training = training;
  return last_pull_;
}

void Pulls::DropOlder(const TrainerSession& newest) {
  for (auto& [pull, place] : pulls_) {
    if (!place.trainer.has_value() ||
        place.trainer->trainer_rank != newest.trainer_rank ||
        place.trainer->session >= newest.session) {
      continue;
    }
    place.slots = std::make_shared<const std::vector<int64_t>>();
    place.memory = {};
    place.training = false;
    place.open = false;
  }
}

absl::Status Pulls::Read(int64_t pull, const kernels::RowTable& table,
                         int64_t row_count, void* out) {
  Place& place = pulls_.at(pull);
  if (!place.fault.ok()) return DeepCopy(place.fault);
  if (row_count > 0) {
    ROWHOUSE_RETURN_IF_ERROR(Gather(table, place, row_count, out));
  }
  place.next += row_count;
  return absl::OkStatus();
}

absl::Status Pulls::Gather(const kernels::RowTable& table, const Place& place,
                           int64_t row_count, void* out) {
  if (place.saved) {
    const char* rows = place.memory.as<char>() +
                       (place.next - place.first_saved) * table.row_bytes();
    ROWHOUSE_RETURN_IF_ERROR(
        backend_->Copy(rows, out, row_count * table.row_bytes()));
  } else {
    const auto slots = std::span<const int64_t>(*place.slots)
                           .subspan(static_cast<size_t>(place.next),
                                    static_cast<size_t>(row_count));
    ROWHOUSE_RETURN_IF_ERROR(backend_->GatherRows(table, slots, out));
  }
  return backend_->Synchronize();
}

bool Pulls::TakeBringCurrent(int64_t pull) {
  Place& place = pulls_.at(pull);
  const std::vector<int64_t>& slots = *place.slots;
  if (!place.training || place.next < static_cast<int64_t>(slots.size())) {
    return false;
  }
  place.training = false;
  return std::adjacent_find(slots.begin(), slots.end(),
                            std::greater_equal<>()) == slots.end();
}

void Pulls::Save(const kernels::RowTable& table) {
  for (auto& [pull, place] : pulls_) {
    if (!place.open || place.saved || !place.fault.ok()) continue;
    place.fault = SaveRest(table, place);
  }
}

absl::Status Pulls::SaveRest(const kernels::RowTable& table, Place& place) {
  const auto left = static_cast<int64_t>(place.slots->size()) - place.next;
  if (left == 0) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      place.memory, backend_->AllocateUninitialized(left * table.row_bytes()));
  ROWHOUSE_RETURN_IF_ERROR(Gather(table, place, left, place.memory.data()));
  place.first_saved = place.next;
  place.saved = true;
  return absl::OkStatus();
}

}  // namespace rowhouse::server
