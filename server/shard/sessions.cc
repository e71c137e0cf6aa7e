#include "server/shard/sessions.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard.h"

namespace rowhouse::server {
namespace {

// How far a session may pass the newest one known here. Shards know of
// different sessions only by calls that failed; without a limit one wrong call
// would leave no number for a successor.
constexpr int64_t kMostAhead = 1'000'000;

absl::Status FencedError(const TrainerSession& trainer, int64_t newest,
                         std::string_view why) {
  return wire::Error(absl::StatusCode::kAborted, wire::reasons::kFenced,
                     absl::StrCat("session ", trainer.session, " of rank ",
                                  trainer.trainer_rank, " ",
                                  absl::string_view(why.data(), why.size()),
                                  "; the newest session is ", newest),
                     {{"trainer_rank", absl::StrCat(trainer.trainer_rank)},
                      {"session", absl::StrCat(trainer.session)},
                      {"newest_session", absl::StrCat(newest)}});
}

}  // namespace

absl::StatusOr<Sessions::Opening> Sessions::Open(const TrainerSession& trainer,
                                                 int64_t owner,
                                                 absl::Time now) {
  if (trainer.session < 1) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadSession,
        absl::StrCat("session is ", trainer.session, "; it must be at least 1"),
        {{"session", absl::StrCat(trainer.session)}});
  }
  const auto found = newest_.find(trainer.trainer_rank);
  const int64_t newest = found == newest_.end() ? 0 : found->second.session;
  if (trainer.session - newest > kMostAhead) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadSession,
        absl::StrCat("session is ", trainer.session, "; it must be at most ",
                     kMostAhead, " past the newest, ", newest),
        {{"session", absl::StrCat(trainer.session)},
         {"newest_session", absl::StrCat(newest)}});
  }
  if (trainer.session > newest) {
    newest_[trainer.trainer_rank] = {trainer.session, owner, now, true};
    return Opening::kNew;
  }
  Life& life = found->second;
  if (trainer.session < life.session) {
    return FencedError(trainer, life.session, "has been passed");
  }
  if (!life.open) return FencedError(trainer, life.session, "was closed");
  if (owner != life.owner) {
    return FencedError(trainer, life.session, "is another owner's");
  }
  life.renewed = now;
  return Opening::kRepeated;
}

absl::Status Sessions::Check(const TrainerSession& trainer) const {
  const auto found = newest_.find(trainer.trainer_rank);
  const int64_t newest = found == newest_.end() ? 0 : found->second.session;
  if (trainer.session > newest || newest == 0) {
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kNoSession,
        absl::StrCat(
            "session ", trainer.session, " of rank ", trainer.trainer_rank,
            " was not opened on this shard; its newest session is ", newest),
        {{"trainer_rank", absl::StrCat(trainer.trainer_rank)},
         {"session", absl::StrCat(trainer.session)},
         {"newest_session", absl::StrCat(newest)}});
  }
  if (trainer.session < newest) {
    return FencedError(trainer, newest, "has been replaced");
  }
  if (!found->second.open) {
    return FencedError(trainer, newest, "was closed by a reset");
  }
  return absl::OkStatus();
}

absl::Status Sessions::Renew(const TrainerSession& trainer, absl::Time now) {
  ROWHOUSE_RETURN_IF_ERROR(Check(trainer));
  newest_[trainer.trainer_rank].renewed = now;
  return absl::OkStatus();
}

void Sessions::CloseAll() {
  for (auto& [rank, life] : newest_) life.open = false;
}

std::vector<SessionState> Sessions::Describe(absl::Time now,
                                             absl::Duration lease) const {
  std::vector<SessionState> states;
  for (const auto& [rank, life] : newest_) {
    // A clock may be set back.
    const absl::Duration idle =
        std::max(absl::ZeroDuration(), now - life.renewed);
    states.push_back({{rank, life.session}, idle, !life.open || idle > lease});
  }
  return states;
}

}  // namespace rowhouse::server
