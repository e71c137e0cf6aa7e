#ifndef ROWHOUSE_SERVER_SHARD_HEAD_CALLS_H_
#define ROWHOUSE_SERVER_SHARD_HEAD_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/shard/head_landing.h"
#include "server/shard/ledger.h"
#include "server/shard/trainer_session.h"

namespace rowhouse::server {

/// The head calls that are open on a shard, and the room that each takes.
///
/// Those that will stage a part are counted by their tokens against their
/// rank's quota. Of the others (evaluations, frozen weights, repeats of parts)
/// each session may have one open, and a few may be without a session.
///
/// Thread-compatible.
class HeadCalls {
 public:
  struct Place {
    std::optional<TrainerSession> trainer;
    std::optional<PartName> staging;  ///< The part it will stage, or has.
    bool staged = false;              ///< Its tokens count as the part's now.
    int64_t token_count = 0;
    std::shared_ptr<HeadMemory> memory;  ///< Never null.
  };

  explicit HeadCalls(int32_t max_anonymous_count)
      : max_anonymous_count_(max_anonymous_count) {}

  /// Errors:
  ///   kResourceExhausted  HEAD_CALLS_OPEN, with a retry delay: for a call that
  ///                       stages nothing.
  absl::Status CheckRoom(const std::optional<TrainerSession>& trainer) const;

  /// Takes a place, in that of an earlier call for the same part, which is
  /// revoked; returns the place's number.
  int64_t Add(Place place);

  /// The call at this place has staged its part.
  void SetStaged(int64_t number);

  /// Gives a place back; one that was revoked has been given back already.
  void Remove(int64_t number) { places_.erase(number); }

  /// Tokens of a rank's calls that will stage parts of an event, but for part
  /// `except`.
  int64_t StagingTokenCount(int64_t event, int32_t trainer_rank,
                            int32_t except) const;

  /// Revokes a rank's calls that will stage parts of an event, or have: its
  /// contribution was discarded (SUPERSEDED).
  void Discard(int64_t event, int32_t trainer_rank);

  /// Revokes a rank's calls that will stage parts of an event: it was sealed
  /// without them (`reason`).
  void Seal(int64_t event, int32_t trainer_rank, const absl::Status& reason);

  /// Revokes the calls that will stage parts of an event that is applied, or
  /// have (EVENT_PAST).
  void Apply(int64_t event);

  /// Revokes a rank's calls: a newer session was opened (FENCED).
  void Fence(int32_t trainer_rank);

  /// Revokes all calls of sessions, which have ended (FENCED).
  void FenceAll();

  /// Revokes all calls.
  void RevokeAll(const absl::Status& reason);

 private:
  void RevokeIf(absl::FunctionRef<bool(const Place&)> chosen,
                const absl::Status& reason);

  const int32_t max_anonymous_count_;
  int64_t last_ = 0;
  std::map<int64_t, Place> places_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HEAD_CALLS_H_
