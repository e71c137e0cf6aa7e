#ifndef ROWHOUSE_CLIENT_INTERNAL_CONTRIBUTIONS_H_
#define ROWHOUSE_CLIENT_INTERNAL_CONTRIBUTIONS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/session.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// The number of a part, and which of the parts that took it this is.
struct PartNumber {
  int32_t part = 0;
  int64_t ticket = 0;
};

/// Numbers a trainer's parts, and knows which events it has sealed.
///
/// Thread-safe.
class Contributions {
 public:
  explicit Contributions(const Inheritance& inheritance);

  /// The first event that is not sealed.
  int64_t next_event() const;

  /// Takes number `part`, or the next one, for a push or a head call that
  /// begins. A number that was left out is taken by one at a time.
  ///
  /// Errors:
  ///   kFailedPrecondition  CONTRIBUTION_SEALED; PART_IN_FLIGHT.
  absl::StatusOr<PartNumber> BeginPart(int64_t event,
                                       std::optional<int32_t> part);

  /// Ends it. A number that was left out is free again if `!landed`.
  void EndPart(int64_t event, const PartNumber& number, bool landed);

  /// Parts to seal `event` with; again the same after it was sealed.
  ///
  /// Errors:
  ///   kFailedPrecondition  CONTRIBUTION_SEALED: by a predecessor, or so long
  ///                        ago that it is not known any more.
  absl::StatusOr<int32_t> PartCount(int64_t event) const;

  /// Checks that `event` is not sealed, by this trainer or a predecessor.
  ///
  /// Errors:
  ///   kFailedPrecondition  CONTRIBUTION_SEALED.
  absl::Status CheckOpen(int64_t event) const;

  void SetSealed(int64_t event, int32_t part_count);
  void Discard(int64_t event);

 private:
  struct Contribution {
    int32_t next_part = 0;
    int64_t in_flight = 0;  // Ticket of a part whose number was left out, or 0.
    bool sealed = false;
    bool inherited = false;
  };

  bool IsSealed(int64_t event) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  int64_t next_event_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, Contribution> contributions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CONTRIBUTIONS_H_
