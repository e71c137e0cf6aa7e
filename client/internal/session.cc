#include "client/internal/session.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "client/internal/retry.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int kMaxRaces = 16;

// Not 0.
int64_t RandomOwner() {
  std::random_device device;
  const uint64_t bits = (uint64_t{device()} << 32) | device();
  return static_cast<int64_t>(bits | 1);
}

absl::StatusOr<int64_t> HighestSession(const Router& router, int32_t rank,
                                       const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<EventState> states,
                            ReadEventStates(router, context));
  int64_t highest = 0;
  for (const EventState& state : states) {
    for (const SessionState& session : state.sessions) {
      if (session.rank == rank) highest = std::max(highest, session.session);
    }
  }
  return highest;
}

// On shard 0 before the others: of two racing trainers one loses there, and
// leaves the rest to the other.
absl::StatusOr<absl::Duration> OpenOnAll(const Router& router,
                                         TrainerSession trainer, int64_t owner,
                                         const CallContext& context) {
  std::vector<absl::Duration> leases(router.shard_count());
  const auto open = [&](int32_t shard, ShardChannel& channel) {
    absl::StatusOr<absl::Duration> lease =
        channel.OpenSession(router.table().name, trainer, owner, context);
    if (lease.ok()) leases[shard] = *lease;
    return lease.status();
  };
  ROWHOUSE_RETURN_IF_ERROR(router.cluster().CallServer(
      0, context, [&](ShardChannel& channel) { return open(0, channel); }));
  ROWHOUSE_RETURN_IF_ERROR(router.CallShards(context, open));
  return *std::min_element(leases.begin(), leases.end());
}

const ContributionState* FindContribution(const EventState& state,
                                          int64_t event, int32_t rank) {
  for (const OpenEventState& open : state.open_events) {
    if (open.event != event) continue;
    for (const ContributionState& contribution : open.contributions) {
      if (contribution.rank == rank) return &contribution;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<EventState>> ReadEventStates(
    const Router& router, const CallContext& context) {
  std::vector<EventState> states(router.shard_count());
  ROWHOUSE_RETURN_IF_ERROR(
      router.CallShards(context, [&](int32_t shard, ShardChannel& channel) {
        absl::StatusOr<EventState> state =
            channel.GetEventState(router.table().name, {}, context);
        if (state.ok()) states[shard] = *std::move(state);
        return state.status();
      }));
  return states;
}

int64_t CommittedEvent(const EventState& state) {
  int64_t event = state.event;
  for (const AppliedEventState& applied : state.applied_events) {
    event = std::max(event, applied.event);
  }
  return event;
}

absl::StatusOr<OpenedSession> OpenSessionEverywhere(
    const Router& router, int32_t rank, const CallContext& context) {
  const int64_t owner = RandomOwner();
  Clock& clock = router.cluster().clock();
  Cancellation never;
  Cancellation& cancellation =
      context.cancellation == nullptr ? never : *context.cancellation;
  Backoff backoff(router.cluster().retry(), static_cast<uint64_t>(owner));
  absl::Status lost;
  for (int race = 0; race < kMaxRaces; ++race) {
    ROWHOUSE_ASSIGN_OR_RETURN(const int64_t highest,
                              HighestSession(router, rank, context));
    const TrainerSession trainer{rank, highest + 1};
    const absl::StatusOr<absl::Duration> lease =
        OpenOnAll(router, trainer, owner, context);
    if (lease.ok()) return OpenedSession{trainer, *lease};
    lost = lease.status();
    if (wire::ReasonOf(lost) != wire::reasons::kFenced) return lost;
    const absl::Time next = clock.Now() + backoff.Next(lost);
    if (next >= context.deadline) return lost;
    if (!cancellation.WaitUntil(clock, next)) {
      return absl::CancelledError("cancelled");
    }
  }
  return lost;
}

namespace {

// The seals of a rank on an open event.
struct Seals {
  int32_t count = 0;  // Shards that have one.
  std::set<int64_t> sessions;
};

}  // namespace

absl::StatusOr<Inheritance> SettleContributions(const Router& router,
                                                TrainerSession trainer,
                                                const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<EventState> states,
                            ReadEventStates(router, context));
  Inheritance result;
  std::map<int64_t, Seals> seals;
  for (const EventState& state : states) {
    result.committed_event =
        std::max(result.committed_event, CommittedEvent(state));
    for (const OpenEventState& open : state.open_events) {
      const ContributionState* contribution =
          FindContribution(state, open.event, trainer.rank);
      if (contribution != nullptr && contribution->sealed) {
        Seals& seen = seals[open.event];
        ++seen.count;
        seen.sessions.insert(contribution->session);
      }
    }
  }
  for (const auto& [event, seen] : seals) {
    // A committed event was sealed everywhere.
    if (event <= result.committed_event) continue;
    if (seen.count == router.shard_count() && seen.sessions.size() == 1) {
      result.sealed_events.insert(event);
      continue;
    }
    ROWHOUSE_RETURN_IF_ERROR(router.CallShards(
        context, [&, sealed = event](int32_t, ShardChannel& channel) {
          return channel.Discard(router.table().name, trainer, sealed, context);
        }));
  }
  return result;
}

absl::Status RepeatCommit(const Router& router, TrainerSession trainer,
                          const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<EventState> states,
                            ReadEventStates(router, context));
  const AppliedEventState* newest = nullptr;
  for (const EventState& state : states) {
    for (const AppliedEventState& applied : state.applied_events) {
      if (newest == nullptr || applied.event > newest->event) {
        newest = &applied;
      }
    }
  }
  if (newest == nullptr) return absl::OkStatus();
  return router.CallShards(context, [&](int32_t shard, ShardChannel& channel) {
    if (CommittedEvent(states[shard]) >= newest->event) {
      return absl::OkStatus();
    }
    return channel.Commit(router.table().name, trainer, newest->event,
                          newest->commit, context);
  });
}

}  // namespace rowhouse::client::internal
