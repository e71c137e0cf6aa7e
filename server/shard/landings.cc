#include "server/shard/landings.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

constexpr int32_t kLast = std::numeric_limits<int32_t>::max();

absl::Status RevokedError(const PartName& name, std::string_view reason,
                          const char* what) {
  return wire::Error(
      absl::StatusCode::kAborted, reason,
      absl::StrCat("part ", name.part, " of rank ", name.trainer_rank,
                   " for event ", name.event, what),
      {{"event", absl::StrCat(name.event)},
       {"trainer_rank", absl::StrCat(name.trainer_rank)},
       {"part", absl::StrCat(name.part)}});
}

absl::Status SupersededError(const PartName& name) {
  return RevokedError(name, wire::reasons::kSuperseded,
                      " began to land again, or was discarded");
}

absl::Status FencedError(const PartName& name) {
  return RevokedError(name, wire::reasons::kFenced,
                      " was of a session that has ended");
}

absl::Status RepeatsOpenError(int32_t trainer_rank) {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kRepeatsOpen,
      absl::StrCat("rank ", trainer_rank, " repeats ", Landings::kMostRepeats,
                   " known parts already"),
      {{"trainer_rank", absl::StrCat(trainer_rank)},
       {"limit", absl::StrCat(Landings::kMostRepeats)}},
      kRetryDelay);
}

}  // namespace

absl::Status LandingTicket::Check() const {
  return revoked_.load(std::memory_order_acquire) ? DeepCopy(reason_)
                                                  : absl::OkStatus();
}

void LandingTicket::Revoke(const absl::Status& reason) {
  reason_ = DeepCopy(reason);
  revoked_.store(true, std::memory_order_release);
  if (on_revoked_ == nullptr) return;
  // It may drop what it is called from.
  auto on_revoked = std::exchange(on_revoked_, nullptr);
  on_revoked(DeepCopy(reason));
}

Landings::Ticket Landings::Begin(const PartName& name, int64_t row_count) {
  const auto found = landings_.find(name);
  if (found != landings_.end()) {
    const Ticket older = std::move(found->second);
    landings_.erase(found);
    older->Revoke(SupersededError(name));
  }
  auto ticket = std::make_shared<LandingTicket>(name, row_count);
  landings_.emplace(name, ticket);
  return ticket;
}

absl::StatusOr<Landings::Ticket> Landings::BeginRepeat(const PartName& name) {
  const auto open =
      std::count_if(repeats_.begin(), repeats_.end(), [&](const auto& repeat) {
        return repeat.first.trainer_rank == name.trainer_rank;
      });
  if (open >= kMostRepeats) return RepeatsOpenError(name.trainer_rank);
  auto ticket = std::make_shared<LandingTicket>(name, 0);
  repeats_.emplace(name, ticket);
  return ticket;
}

void Landings::End(const LandingTicket& ticket) {
  for (Map* const map : {&landings_, &repeats_}) {
    const auto [first, last] = map->equal_range(ticket.name());
    for (auto it = first; it != last; ++it) {
      if (it->second.get() != &ticket) continue;
      map->erase(it);
      return;
    }
  }
}

int64_t Landings::RowCount(int64_t event, int32_t trainer_rank,
                           int32_t except) const {
  int64_t row_count = 0;
  const auto last = landings_.upper_bound({event, trainer_rank, kLast});
  for (auto it = landings_.lower_bound({event, trainer_rank, 0}); it != last;
       ++it) {
    if (it->first.part != except) row_count += it->second->row_count();
  }
  return row_count;
}

void Landings::Discard(int64_t event, int32_t trainer_rank) {
  RevokeBoth([=](const PartName& name) {
    return name.event == event && name.trainer_rank == trainer_rank
               ? SupersededError(name)
               : absl::OkStatus();
  });
}

void Landings::Seal(int64_t event, int32_t trainer_rank,
                    const absl::Status& reason) {
  Revoke(landings_, [&](const PartName& name) {
    return name.event == event && name.trainer_rank == trainer_rank
               ? reason
               : absl::OkStatus();
  });
}

void Landings::Fence(int32_t trainer_rank) {
  RevokeBoth([=](const PartName& name) {
    return name.trainer_rank == trainer_rank ? FencedError(name)
                                             : absl::OkStatus();
  });
}

void Landings::FenceAll() {
  RevokeBoth([](const PartName& name) { return FencedError(name); });
}

void Landings::RevokeAll(const absl::Status& reason) {
  RevokeBoth([&](const PartName&) { return reason; });
}

void Landings::RevokeBoth(Judge judge) {
  Revoke(landings_, judge);
  Revoke(repeats_, judge);
}

void Landings::Revoke(Map& landings, Judge judge) {
  std::vector<std::pair<Ticket, absl::Status>> revoked;
  for (auto it = landings.begin(); it != landings.end();) {
    absl::Status reason = judge(it->first);
    if (reason.ok()) {
      ++it;
      continue;
    }
    revoked.emplace_back(std::move(it->second), std::move(reason));
    it = landings.erase(it);
  }
  for (const auto& [ticket, reason] : revoked) ticket->Revoke(reason);
}

}  // namespace rowhouse::server
