#ifndef ROWHOUSE_SERVER_SHARD_PARKED_H_
#define ROWHOUSE_SERVER_SHARD_PARKED_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// A call that waits for an event.
struct ParkedCall {
  int64_t applied_event = 0;  ///< Until this one is applied,
  int64_t sealed_event = 0;   ///< and all ranks have sealed this one,
  /// and so many parts of a rank's contribution to this one are folded.
  int64_t folded_event = 0;
  int32_t folded_rank = 0;
  int32_t folded_part_count = 0;
  /// Until so many chunks of snapshots have come back.
  int64_t chunk_returns = 0;
  absl::Time until;
  std::shared_ptr<Call> call;
  /// The session that calls; when it ends, so does the wait.
  std::optional<TrainerSession> trainer;
  /// Called once, with OK when the wait is over.
  absl::AnyInvocable<void(absl::Status)> resume;
};

/// The calls that wait for events.
///
/// Thread-compatible.
class Parked {
 public:
  explicit Parked(int32_t max_count) : max_count_(max_count) {}

  /// Errors:
  ///   kResourceExhausted  PARKED_READS_FULL, with a retry delay.
  absl::Status CheckRoom() const;

  int32_t count() const { return static_cast<int32_t>(calls_.size()); }

  /// REQUIRES: there is room.
  void Park(ParkedCall parked) { calls_.push_back(std::move(parked)); }

  /// A call and what it ends with.
  using Ended = std::pair<ParkedCall, absl::Status>;

  /// Takes out, in the order they came, the calls that `judge` gives a status.
  std::vector<Ended> TakeEnded(
      absl::FunctionRef<std::optional<absl::Status>(const ParkedCall&)> judge);

  /// When the first of them gives up; InfiniteFuture without any.
  absl::Time FirstUntil() const;

 private:
  int32_t max_count_;
  std::list<ParkedCall> calls_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_PARKED_H_
