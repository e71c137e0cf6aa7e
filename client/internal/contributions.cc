#include "client/internal/contributions.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::client::internal {
namespace {

// Sealed contributions that are remembered, for repeated seals.
constexpr int64_t kRemembered = 4;

absl::Status Sealed(int64_t event, int64_t next_event) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kContributionSealed,
      absl::StrCat("the contribution to event ", event,
                   " is sealed, wanted event ", next_event, " or later"),
      {{"event", std::to_string(event)},
       {"next_event", std::to_string(next_event)}});
}

}  // namespace

Contributions::Contributions(const Inheritance& inheritance)
    : next_event_(inheritance.committed_event + 1) {
  MutexLock lock(mutex_);
  for (const int64_t event : inheritance.sealed_events) {
    contributions_[event].sealed = true;
    contributions_[event].inherited = true;
  }
  Advance();
}

int64_t Contributions::next_event() const {
  MutexLock lock(mutex_);
  return next_event_;
}

absl::Status Contributions::CheckOpen(int64_t event) const {
  MutexLock lock(mutex_);
  return IsSealed(event) ? Sealed(event, next_event_) : absl::OkStatus();
}

bool Contributions::IsSealed(int64_t event) const {
  const auto found = contributions_.find(event);
  return event < next_event_ ||
         (found != contributions_.end() && found->second.sealed);
}

absl::StatusOr<PartNumber> Contributions::BeginPart(
    int64_t event, std::optional<int32_t> part) {
  MutexLock lock(mutex_);
  if (part.has_value()) return PartNumber{*part, next_ticket_++};
  if (IsSealed(event)) return Sealed(event, next_event_);
  Contribution& contribution = contributions_[event];
  if (contribution.in_flight != 0) {
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kPartInFlight,
        absl::StrCat("part ", contribution.next_part, " of event ", event,
                     " is under way, wanted a part number to begin "
                     "another at once"),
        {{"event", std::to_string(event)}});
  }
  contribution.in_flight = next_ticket_++;
  return PartNumber{contribution.next_part, contribution.in_flight};
}

void Contributions::EndPart(int64_t event, const PartNumber& number,
                            bool landed) {
  MutexLock lock(mutex_);
  if (event < next_event_) return;
  Contribution& contribution = contributions_[event];
  if (contribution.in_flight == number.ticket) contribution.in_flight = 0;
  if (landed) {
    contribution.next_part = std::max(contribution.next_part, number.part + 1);
  }
}

absl::StatusOr<int32_t> Contributions::PartCount(int64_t event) const {
  MutexLock lock(mutex_);
  const auto found = contributions_.find(event);
  if (found == contributions_.end()) {
    if (event < next_event_) return Sealed(event, next_event_);
    return 0;
  }
  if (found->second.inherited) return Sealed(event, next_event_);
  return found->second.next_part;
}

void Contributions::SetSealed(int64_t event, int32_t part_count) {
  MutexLock lock(mutex_);
  if (event < next_event_) return;
  Contribution& contribution = contributions_[event];
  contribution.sealed = true;
  contribution.next_part = part_count;
  Advance();
}

void Contributions::Discard(int64_t event) {
  MutexLock lock(mutex_);
  contributions_.erase(event);
}

void Contributions::Advance() {
  while (true) {
    const auto found = contributions_.find(next_event_);
    if (found == contributions_.end() || !found->second.sealed) break;
    ++next_event_;
  }
  contributions_.erase(contributions_.begin(),
                       contributions_.lower_bound(next_event_ - kRemembered));
}

}  // namespace rowhouse::client::internal
