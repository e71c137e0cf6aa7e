#include "server/shard/handles.h"

#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

// Bounds what handles of no rows cost.
constexpr size_t kMostHandlesPerRank = 4096;

uint64_t RandomBits() {
  std::random_device device;
  return (uint64_t{device()} << 32) ^ device();
}

}  // namespace

Handles::Handles(int64_t max_row_count_per_rank)
    : max_row_count_per_rank_(max_row_count_per_rank), last_(RandomBits()) {}

int64_t Handles::NextHandle() {
  constexpr uint64_t kMask = std::numeric_limits<int64_t>::max();
  do {
    ++last_;
  } while ((last_ & kMask) == 0);
  return static_cast<int64_t>(last_ & kMask);
}

int64_t Handles::Add(int32_t trainer_rank, SharedSlots slots) {
  const auto row_count = static_cast<int64_t>(slots->size());
  if (row_count > max_row_count_per_rank_) return 0;
  Kept& kept = kept_[trainer_rank];
  while (kept.row_count > max_row_count_per_rank_ - row_count ||
         kept.entries.size() >= kMostHandlesPerRank) {
    kept.row_count -= static_cast<int64_t>(kept.entries.front().slots->size());
    kept.entries.pop_front();
  }
  const int64_t handle = NextHandle();
  kept.entries.push_back({handle, std::move(slots)});
  kept.row_count += row_count;
  return handle;
}

absl::StatusOr<SharedSlots> Handles::Find(int32_t trainer_rank,
                                          int64_t handle) const {
  const auto kept = kept_.find(trainer_rank);
  if (kept != kept_.end()) {
    for (const Entry& entry : kept->second.entries) {
      if (entry.handle == handle) return entry.slots;
    }
  }
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kHandleGone,
                     absl::StrCat("handle ", handle, " is not one that rank ",
                                  trainer_rank, " holds now: send the row ids"),
                     {{"handle", absl::StrCat(handle)},
                      {"trainer_rank", absl::StrCat(trainer_rank)}});
}

void Handles::Clear() { kept_.clear(); }

}  // namespace rowhouse::server
