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
/// each session may have two open, and a few may be without a session; one
/// whose event is applied makes room.
///
/// Thread-compatible.
class HeadCalls {
 public:
  struct Place {
    std::optional<TrainerSession> trainer;
    int64_t event = 0;
    bool evaluation = false;
    std::optional<PartName> staging;  ///< The part it will stage, or has.
    bool staged = false;              ///< Its tokens count as the part's now.
    bool computed = false;            ///< Its statistics are there.
    int64_t token_count = 0;
    std::shared_ptr<HeadMemory> memory;  ///< Never null.
  };

  explicit HeadCalls(int32_t max_anonymous_count)
      : max_anonymous_count_(max_anonymous_count) {}

  /// Calls that stage no part, of one session.
  static constexpr int kMostPerSession = 2;

  bool empty() const { return places_.empty(); }
  int32_t count() const { return static_cast<int32_t>(places_.size()); }

  /// Makes room for a call that stages nothing: where there is none, the oldest
  /// such call of the same session whose event is applied is revoked
  /// (SUPERSEDED).
  ///
  /// Errors:
  ///   kResourceExhausted  HEAD_CALLS_OPEN, with a retry delay.
  absl::Status MakeRoom(const std::optional<TrainerSession>& trainer,
                        int64_t applied);

  /// Revokes the call that will stage this part, if any (SUPERSEDED).
  void Supersede(const PartName& name);

  /// Takes a place and returns its number.
  int64_t Add(Place place);

  /// The statistics of the call at this place are there.
  void SetComputed(int64_t number);

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

  /// Revokes the calls of events up to the one that is applied (EVENT_PAST),
  /// but for evaluations whose statistics are there.
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
