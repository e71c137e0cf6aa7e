#ifndef ROWHOUSE_SERVER_IMPORTS_H_
#define ROWHOUSE_SERVER_IMPORTS_H_

#include <cstdint>
#include <map>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// The imports of one table that are under way. Each keeps its rows until it is
/// complete, so only `kMostImports` may be; and one whose caller has stalled
/// gives its place to the next.
///
/// Thread-safe.
class Imports {
 public:
  /// Ends an import that waits for its caller. Called at most once, with no
  /// lock held; perhaps when the import has ended otherwise.
  using Interrupt = absl::AnyInvocable<void(absl::Status)>;

  /// Takes a place and returns its number. When all are taken, the import that
  /// has been silent longest, if for `patience`, is interrupted: ABORTED
  /// (SUPERSEDED).
  ///
  /// Errors:
  ///   kResourceExhausted  IMPORTS_OPEN, with a retry delay.
  ///   or what all were interrupted with.
  absl::StatusOr<int64_t> Begin(std::string_view table, absl::Time now,
                                absl::Duration patience, Interrupt interrupt)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// The import's caller was heard of at `time`; at absl::InfiniteFuture(), all
  /// has come and it is not waited for any more.
  void Heard(int64_t import, absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Gives the place back, unless it was lost.
  void End(int64_t import) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Interrupts all, and refuses later ones.
  void InterruptAll(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Place {
    absl::Time heard;
    Interrupt interrupt;
  };

  // Takes the place of the import that was heard of least lately, if by
  // `deadline`.
  Interrupt Evict(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Place> places_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_IMPORTS_H_
