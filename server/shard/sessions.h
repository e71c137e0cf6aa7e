#ifndef ROWHOUSE_SERVER_SHARD_SESSIONS_H_
#define ROWHOUSE_SERVER_SHARD_SESSIONS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// The newest session of each rank.
///
/// Thread-compatible.
class Sessions {
 public:
  enum class Opening : uint8_t {
    kNew,       ///< Older sessions of the rank are fenced from now on.
    kRepeated,  ///< The same owner asked again.
  };

  /// Opens a session; its lease begins at `now`.
  ///
  /// Errors:
  ///   kInvalidArgument  BAD_SESSION: the number is below 1.
  ///   kAborted          FENCED: the number was passed, closed or another's.
  absl::StatusOr<Opening> Open(const TrainerSession& trainer, int64_t owner,
                               absl::Time now);

  /// Checks that the session is the newest of its rank, and open.
  ///
  /// Errors:
  ///   kAborted             FENCED: a newer one replaced it, or it was closed.
  ///   kFailedPrecondition  NO_SESSION: it was never opened here.
  absl::Status Check(const TrainerSession& trainer) const;

  /// Begins the lease anew. Errors: as `Check`.
  absl::Status Renew(const TrainerSession& trainer, absl::Time now);

  /// Closes all sessions; their numbers stay used.
  void CloseAll();

  /// By rank. A closed session's lease has expired.
  std::vector<SessionState> Describe(absl::Time now,
                                     absl::Duration lease) const;

 private:
  struct Life {
    int64_t session = 0;
    int64_t owner = 0;
    absl::Time renewed;
    bool open = true;
  };

  std::map<int32_t, Life> newest_;  // By rank.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SESSIONS_H_
