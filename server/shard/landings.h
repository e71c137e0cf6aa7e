#ifndef ROWHOUSE_SERVER_SHARD_LANDINGS_H_
#define ROWHOUSE_SERVER_SHARD_LANDINGS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/ledger.h"

namespace rowhouse::server {

/// A landing part's place, until the lane revokes it: then the part can be
/// staged no more, and its memory is to be freed without waiting for more of
/// it.
///
/// Thread-compatible, the lane's; but for `Check`, which any thread may call.
class LandingTicket {
 public:
  LandingTicket(const PartName& name, int64_t row_count)
      : name_(name), row_count_(row_count) {}

  const PartName& name() const { return name_; }
  /// Rows that count against the contribution: 0 of a repeat.
  int64_t row_count() const { return row_count_; }

  /// Why it was revoked, or OK.
  absl::Status Check() const;

  void set_on_revoked(absl::AnyInvocable<void(absl::Status)> on_revoked) {
    on_revoked_ = std::move(on_revoked);
  }

  /// Makes `Check` fail, then tells the receiver. Once.
  void Revoke(const absl::Status& reason);

 private:
  const PartName name_;
  const int64_t row_count_;
  absl::AnyInvocable<void(absl::Status)> on_revoked_;
  absl::Status reason_;  // Not written once `revoked_` is set.
  std::atomic<bool> revoked_ = false;
};

/// The parts that are being received: new ones, and repeats of known ones.
///
/// Thread-compatible.
class Landings {
 public:
  using Ticket = std::shared_ptr<LandingTicket>;

  /// Begins to land a part, in place of an earlier landing of that name, which
  /// is revoked (SUPERSEDED).
  Ticket Begin(const PartName& name, int64_t row_count);

  /// Repeats that one rank may have under way: each holds up to a message.
  static constexpr int kMostRepeats = 16;

  /// Begins to receive a part that is known already, beside others of its name.
  ///
  /// Errors:
  ///   kResourceExhausted  REPEATS_OPEN, with a retry delay: the rank has
  ///                       `kMostRepeats`.
  absl::StatusOr<Ticket> BeginRepeat(const PartName& name);

  /// Ends a landing; one that was revoked has ended already.
  void End(const LandingTicket& ticket);

  /// Landings, repeats too.
  int32_t count() const {
    return static_cast<int32_t>(landings_.size() + repeats_.size());
  }

  /// Rows of a rank's landing parts of an event, but for part `except`.
  int64_t RowCount(int64_t event, int32_t trainer_rank, int32_t except) const;

  /// Revokes a rank's landings for an event: its contribution was discarded
  /// (SUPERSEDED).
  void Discard(int64_t event, int32_t trainer_rank);

  /// Revokes a rank's new parts for an event: it was sealed without them.
  void Seal(int64_t event, int32_t trainer_rank, const absl::Status& reason);

  /// Revokes a rank's landings: a newer session was opened (FENCED).
  void Fence(int32_t trainer_rank);

  /// Revokes all landings: every session has ended (FENCED).
  void FenceAll();

  /// Revokes all landings.
  void RevokeAll(const absl::Status& reason);

 private:
  using Map = std::multimap<PartName, Ticket>;
  // Why a landing of this name is revoked; OK leaves it.
  using Judge = absl::FunctionRef<absl::Status(const PartName&)>;

  static void Revoke(Map& landings, Judge judge);
  void RevokeBoth(Judge judge);

  Map landings_;  // New parts: one of a name.
  Map repeats_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LANDINGS_H_
