#ifndef ROWHOUSE_SERVER_SHARD_LANDINGS_H_
#define ROWHOUSE_SERVER_SHARD_LANDINGS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "server/shard/ledger.h"

namespace rowhouse::server {

/// A landing part's place. The lane revokes it; the thread that receives the
/// part looks, to stop early and free its memory.
struct LandingTicket {
  enum class State : uint8_t {
    kLive,
    kSuperseded,  ///< The part began to land again, or was discarded.
    kFenced,      ///< A newer session of the rank was opened, or all closed.
  };

  PartName name;
  int64_t row_count = 0;
  std::atomic<State> state = State::kLive;

  /// Errors:
  ///   kAborted  SUPERSEDED, FENCED.
  absl::Status Check() const;
};

/// The parts that are being received: new ones, not repeats of known parts.
///
/// Thread-compatible.
class Landings {
 public:
  using Ticket = std::shared_ptr<LandingTicket>;

  /// Begins to land a part, in place of an earlier landing of that name.
  Ticket Begin(const PartName& name, int64_t row_count);

  /// Ends a landing; one that was revoked has ended already.
  void End(const LandingTicket& ticket);

  /// Rows of a rank's landing parts of an event, but for part `except`.
  int64_t RowCount(int64_t event, int32_t trainer_rank, int32_t except) const;

  /// Revokes a rank's landings for an event.
  void Revoke(int64_t event, int32_t trainer_rank, LandingTicket::State reason);

  /// Revokes all landings.
  void RevokeAll(LandingTicket::State reason);

 private:
  using Map = std::map<PartName, Ticket>;

  void Revoke(Map::iterator first, Map::iterator last,
              LandingTicket::State reason);

  Map landings_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LANDINGS_H_
