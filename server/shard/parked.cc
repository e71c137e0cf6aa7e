#include "server/shard/parked.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::Status Parked::CheckRoom() const {
  const auto count = static_cast<int64_t>(calls_.size());
  if (count < max_count_) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kParkedReadsFull,
      absl::StrCat(count, " calls wait for events; at most ", max_count_,
                   " may (max_parked_read_count)"),
      {{"limit", "max_parked_read_count"}, {"value", absl::StrCat(max_count_)}},
      kRetryDelay);
}

std::vector<Parked::Ended> Parked::TakeEnded(
    absl::FunctionRef<std::optional<absl::Status>(const ParkedCall&)> judge) {
  std::vector<Ended> ended;
  for (auto it = calls_.begin(); it != calls_.end();) {
    std::optional<absl::Status> status = judge(*it);
    if (status.has_value()) {
      ended.emplace_back(std::move(*it), *std::move(status));
      it = calls_.erase(it);
    } else {
      ++it;
    }
  }
  return ended;
}

absl::Time Parked::FirstUntil() const {
  absl::Time first = absl::InfiniteFuture();
  for (const ParkedCall& parked : calls_) first = std::min(first, parked.until);
  return first;
}

}  // namespace rowhouse::server
