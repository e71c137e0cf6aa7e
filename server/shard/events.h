#ifndef ROWHOUSE_SERVER_SHARD_EVENTS_H_
#define ROWHOUSE_SERVER_SHARD_EVENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/event_commit.h"
#include "server/shard/ledger.h"
#include "server/shard/shard.h"
#include "server/shard/staged_part.h"
#include "server/shard/trainer_counts.h"

namespace rowhouse::server {

/// What one rank has given to one open event.
struct Contribution {
  int64_t session = 0;
  bool sealed = false;
  int64_t row_count = 0;
  int64_t token_count = 0;              ///< Of head parts.
  int64_t staged_bytes = 0;             ///< Backend memory of the parts.
  std::map<int32_t, StagedPart> parts;  ///< By number.
};

/// Contributions to one event, by rank.
using Contributions = std::map<int32_t, Contribution>;

/// The contributions of the two open events, and what the last two applied
/// events were. The `Check` functions change nothing; what they have let pass
/// the others carry out.
///
/// Thread-compatible.
class Events {
 public:
  /// Events that are open at once, and kept after they were applied.
  static constexpr int64_t kOpen = 2;
  static constexpr int64_t kKept = 2;

  enum class Age : uint8_t {
    kForgotten,  ///< Applied, and before the kept ones, or restored.
    kApplied,    ///< One of the kept ones.
    kOpen,
    kAhead,
  };

  int64_t applied() const { return applied_; }

  /// REQUIRES: `event >= 1`.
  Age AgeOf(int64_t event) const;

  /// Trainers of each event.
  TrainerCounts& trainer_counts() { return trainer_counts_; }
  const TrainerCounts& trainer_counts() const { return trainer_counts_; }

  /// A rank's contribution to an open event; null when there is none.
  const Contribution* Find(int64_t event, int32_t trainer_rank) const;

  /// Whether all ranks of an event have sealed it, or it has been applied.
  bool AllSealed(int64_t event) const;

  /// Checks that a new part of an open event may be staged.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_RANK.
  ///   kFailedPrecondition  CONTRIBUTION_SEALED.
  absl::Status CheckPart(const PartName& name) const;

  /// Stages a part of an open event.
  void Stage(const PartName& name, int64_t session, StagedPart part);

  /// Checks a seal; `arriving` is a part that will have been staged by then.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_EVENT, BAD_RANK, BAD_PART; BAD_COUNT: a part
  ///                        past `part_count` is staged.
  ///   kFailedPrecondition  EVENT_AHEAD, PARTS_MISSING, CONTRIBUTION_SEALED.
  absl::Status CheckSeal(const TrainerSession& trainer, int64_t event,
                         int32_t part_count,
                         std::optional<int32_t> arriving = std::nullopt) const;

  /// Seals, unless that has been done.
  void Seal(const TrainerSession& trainer, int64_t event);

  /// Drops a rank's contribution and returns its part count.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_EVENT.
  ///   kFailedPrecondition  EVENT_PAST, CONTRIBUTION_SEALED (by `trainer`).
  absl::StatusOr<int32_t> Discard(const TrainerSession& trainer, int64_t event);

  /// Drops a rank's unsealed contributions; returns the events that lost one.
  std::vector<int64_t> DropUnsealed(int32_t trainer_rank);

  /// Checks a commit and returns whether it had been recorded; `sealing` is a
  /// session whose rank will have sealed by then.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_EVENT, BAD_COMMIT, BAD_SCALAR.
  ///   kFailedPrecondition  EVENT_AHEAD, NOT_SEALED, SESSIONS_DIFFER.
  ///   kAlreadyExists       COMMIT_DIFFERS.
  absl::StatusOr<bool> CheckCommit(
      int64_t event, const EventCommit& commit, const UpdateRule& rule,
      std::optional<TrainerSession> sealing = std::nullopt) const;

  /// Errors:
  ///   kFailedPrecondition  NOT_SEALED: names the first rank of the open event.
  absl::Status CheckAllSealed(int64_t event) const;

  /// Parts of an open event in canonical order: by rank, then number.
  std::vector<kernels::GradientPart> PartsOf(int64_t event) const;

  /// Whether an open event has a part of a head call with tokens.
  bool HasHeadParts() const;

  /// Rows and head tokens of an open event.
  int64_t EntryCount(int64_t event) const;

  /// Backend memory of all staged parts.
  int64_t StagedBytes() const;

  /// Moves the next event to the applied ones and hands over its contributions.
  Contributions Archive(const EventCommit& commit,
                        const kernels::EventReport& report);

  /// Back to event 0 and the first trainer count.
  void Reset(int32_t first_trainer_count);

  /// To an event of which no more is known than that it was applied.
  void Restore(int64_t event, TrainerCounts trainer_counts);

  std::vector<OpenEventState> DescribeOpen() const;
  std::vector<AppliedEventState> DescribeApplied() const;

  explicit Events(int32_t first_trainer_count, int32_t max_part_count)
      : trainer_counts_(first_trainer_count), max_part_count_(max_part_count) {}

 private:
  struct Applied {
    AppliedEventState state;
    std::vector<ContributionState> contributions;  // By rank, all sealed.
  };

  const Applied* FindApplied(int64_t event) const;
  absl::Status CheckRank(int64_t event, int32_t trainer_rank) const;
  absl::Status CheckSealApplied(const TrainerSession& trainer, int64_t event,
                                int32_t part_count) const;
  absl::Status CheckPartsComplete(const Contribution* contribution,
                                  int32_t part_count,
                                  std::optional<int32_t> arriving) const;
  absl::Status CheckSessions(int64_t event, const EventCommit& commit,
                             std::optional<TrainerSession> sealing) const;
  std::optional<int32_t> FirstUnsealed(
      int64_t event, std::optional<TrainerSession> sealing) const;

  TrainerCounts trainer_counts_;
  int32_t max_part_count_;
  int64_t applied_ = 0;
  int64_t restored_ = 0;                   // The event of `Restore`.
  std::map<int64_t, Contributions> open_;  // By event.
  std::deque<Applied> kept_;               // Ascending.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_EVENTS_H_
