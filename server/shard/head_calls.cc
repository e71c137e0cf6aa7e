#include "server/shard/head_calls.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

absl::Status FencedError() {
  return wire::Error(absl::StatusCode::kAborted, wire::reasons::kFenced,
                     "the head call was of a session that has ended");
}

absl::Status SupersededError() {
  return wire::Error(
      absl::StatusCode::kAborted, wire::reasons::kSuperseded,
      "the head call's part was begun again, or its contribution discarded");
}

// Whether the call will stage, or has staged, a part of this contribution.
bool IsOf(const HeadCalls::Place& place, int64_t event, int32_t trainer_rank) {
  return place.staging.has_value() && place.staging->event == event &&
         place.staging->trainer_rank == trainer_rank;
}

}  // namespace

absl::Status HeadCalls::MakeRoom(const std::optional<TrainerSession>& trainer,
                                 int64_t applied) {
  const int64_t most =
      trainer.has_value() ? kMostPerSession : max_anonymous_count_;
  int64_t open = 0;
  auto over = places_.end();
  for (auto it = places_.begin(); it != places_.end(); ++it) {
    const Place& place = it->second;
    if (place.staging.has_value() || place.trainer != trainer) continue;
    ++open;
    if (over == places_.end() && place.event <= applied) over = it;
  }
  if (open < most) return absl::OkStatus();
  if (over != places_.end()) {
    over->second.memory->Revoke(SupersededError());
    places_.erase(over);
    return absl::OkStatus();
  }
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kHeadCallsOpen,
      absl::StrCat(open, " head calls that stage no part are open; ",
                   trainer.has_value() ? "a session may have "
                                       : "without a session there may be ",
                   most),
      {{"limit", "head calls"}, {"value", absl::StrCat(most)}}, kRetryDelay);
}

void HeadCalls::Supersede(const PartName& name) {
  RevokeIf([&](const Place& place) { return place.staging == name; },
           SupersededError());
}

int64_t HeadCalls::Add(Place place) {
  places_[++last_] = std::move(place);
  return last_;
}

void HeadCalls::SetComputed(int64_t number) {
  const auto found = places_.find(number);
  if (found != places_.end()) found->second.computed = true;
}

void HeadCalls::SetStaged(int64_t number) {
  const auto found = places_.find(number);
  if (found != places_.end()) found->second.staged = true;
}

int64_t HeadCalls::StagingTokenCount(int64_t event, int32_t trainer_rank,
                                     int32_t except) const {
  int64_t token_count = 0;
  for (const auto& [number, place] : places_) {
    if (IsOf(place, event, trainer_rank) && place.staging->part != except &&
        !place.staged) {
      token_count += place.token_count;
    }
  }
  return token_count;
}

void HeadCalls::Discard(int64_t event, int32_t trainer_rank) {
  RevokeIf([&](const Place& place) { return IsOf(place, event, trainer_rank); },
           SupersededError());
}

void HeadCalls::Seal(int64_t event, int32_t trainer_rank,
                     const absl::Status& reason) {
  RevokeIf(
      [&](const Place& place) {
        return IsOf(place, event, trainer_rank) && !place.staged;
      },
      reason);
}

void HeadCalls::Apply(int64_t event) {
  RevokeIf(
      [&](const Place& place) {
        return place.event <= event && !(place.evaluation && place.computed);
      },
      EventPastError("the head call is for event", event, event));
}

void HeadCalls::Fence(int32_t trainer_rank) {
  RevokeIf(
      [&](const Place& place) {
        return place.trainer.has_value() &&
               place.trainer->trainer_rank == trainer_rank;
      },
      FencedError());
}

void HeadCalls::FenceAll() {
  RevokeIf([](const Place& place) { return place.trainer.has_value(); },
           FencedError());
}

void HeadCalls::RevokeAll(const absl::Status& reason) {
  RevokeIf([](const Place&) { return true; }, reason);
}

void HeadCalls::RevokeIf(absl::FunctionRef<bool(const Place&)> chosen,
                         const absl::Status& reason) {
  for (auto it = places_.begin(); it != places_.end();) {
    if (!chosen(it->second)) {
      ++it;
      continue;
    }
    it->second.memory->Revoke(reason);
    it = places_.erase(it);
  }
}

}  // namespace rowhouse::server
