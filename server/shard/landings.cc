#include "server/shard/landings.h"

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

constexpr int32_t kLast = std::numeric_limits<int32_t>::max();

}  // namespace

absl::Status LandingTicket::Check() const {
  const State now = state.load();
  if (now == State::kLive) return absl::OkStatus();
  const bool fenced = now == State::kFenced;
  return wire::Error(
      absl::StatusCode::kAborted,
      fenced ? wire::reasons::kFenced : wire::reasons::kSuperseded,
      absl::StrCat("part ", name.part, " of rank ", name.trainer_rank,
                   " for event ", name.event,
                   fenced ? " was of a session that has ended"
                          : " began to land again, or was discarded"),
      {{"event", absl::StrCat(name.event)},
       {"trainer_rank", absl::StrCat(name.trainer_rank)},
       {"part", absl::StrCat(name.part)}});
}

Landings::Ticket Landings::Begin(const PartName& name, int64_t row_count) {
  auto ticket = std::make_shared<LandingTicket>();
  ticket->name = name;
  ticket->row_count = row_count;
  Ticket& place = landings_[name];
  if (place != nullptr) place->state = LandingTicket::State::kSuperseded;
  place = ticket;
  return ticket;
}

void Landings::End(const LandingTicket& ticket) {
  const auto found = landings_.find(ticket.name);
  if (found != landings_.end() && found->second.get() == &ticket) {
    landings_.erase(found);
  }
}

int64_t Landings::RowCount(int64_t event, int32_t trainer_rank,
                           int32_t except) const {
  int64_t row_count = 0;
  const auto last = landings_.upper_bound({event, trainer_rank, kLast});
  for (auto it = landings_.lower_bound({event, trainer_rank, 0}); it != last;
       ++it) {
    if (it->first.part != except) row_count += it->second->row_count;
  }
  return row_count;
}

void Landings::Revoke(int64_t event, int32_t trainer_rank,
                      LandingTicket::State reason) {
  Revoke(landings_.lower_bound({event, trainer_rank, 0}),
         landings_.upper_bound({event, trainer_rank, kLast}), reason);
}

void Landings::RevokeAll(LandingTicket::State reason) {
  Revoke(landings_.begin(), landings_.end(), reason);
}

void Landings::Revoke(Map::iterator first, Map::iterator last,
                      LandingTicket::State reason) {
  for (auto it = first; it != last; ++it) it->second->state = reason;
  landings_.erase(first, last);
}

}  // namespace rowhouse::server
