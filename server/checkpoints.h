#ifndef ROWHOUSE_SERVER_CHECKPOINTS_H_
#define ROWHOUSE_SERVER_CHECKPOINTS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"
#include "server/admin_thread.h"
#include "server/checkpoint/checkpoint_directory.h"

namespace rowhouse::server {

/// Where a server's checkpoints lie, and what becomes of them.
struct CheckpointOptions {
  std::string directory;
  int32_t keep_count = 0;  ///< 0: all.
  int64_t buffer_bytes = int64_t{256} << 20;
};

/// Checks that files can be made in a directory.
///
/// Errors:
///   kInvalidArgument  it is not there, or they cannot; names it and says why.
absl::Status CheckDirectory(const std::string& directory);

/// The directory of checkpoints as one server works in it.
///
/// Thread-safe.
class Checkpoints {
 public:
  explicit Checkpoints(CheckpointOptions options);

  const CheckpointOptions& options() const { return options_; }
  CheckpointDirectory& directory() { return directory_; }

  /// Runs short work with files, one after another, on a thread of its own.
  void Post(absl::AnyInvocable<void()> work) { thread_.Post(std::move(work)); }

  /// Until the result goes, files of this checkpoint are being written here.
  std::shared_ptr<void> NoteUnderWay(const std::string& checkpoint)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::set<std::string> UnderWay() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const CheckpointOptions options_;
  CheckpointDirectory directory_;
  mutable Mutex mutex_;
  std::multiset<std::string> under_way_ ABSL_GUARDED_BY(mutex_);
  AdminThread thread_;  // Last: its tasks use the members above.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINTS_H_
