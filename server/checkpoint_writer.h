#ifndef ROWHOUSE_SERVER_CHECKPOINT_WRITER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint_work.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// Writes one shard's files of a checkpoint on a thread of its own: arms the
/// shard, writes its rows as of the event while later events go on, then its
/// manifest. What it has written is removed when it fails or is cancelled.
///
/// Thread-safe.
class CheckpointWriter : public CheckpointWork {
 public:
  struct Request {
    std::string checkpoint;  ///< Short name.
    int64_t event = 0;
    std::string base;          ///< Short name of a whole checkpoint, or empty.
    int64_t buffer_bytes = 0;  ///< Host memory for rows on their way to disk.
  };

  /// Called once each, on a thread of the writer or the shard: `armed` when the
  /// shard will be cut at the event, unless that fails; `done` at the end,
  /// last.
  struct Callbacks {
    absl::AnyInvocable<void()> armed;
    absl::AnyInvocable<void(absl::Status)> done;
  };

  /// `directory` must outlive it.
  ///
  /// Errors given to `done`:
  ///   kFailedPrecondition  EVENT_PAST: the shard is past the event. NO_BASE:
  ///                        its rows did not come to be from the base's.
  ///   kResourceExhausted   CHECKPOINTS_OPEN; NOT_WRITABLE.
  ///   kCancelled           it was cancelled.
  static std::unique_ptr<CheckpointWriter> Start(
      CheckpointDirectory& directory, std::shared_ptr<ServedTable> table,
      Request request, Callbacks callbacks);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_WRITER_H_
