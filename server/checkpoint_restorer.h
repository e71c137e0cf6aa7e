#ifndef ROWHOUSE_SERVER_CHECKPOINT_RESTORER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_RESTORER_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/backend.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint_work.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// Overwrites one shard with its rows of a checkpoint on a thread of its own.
///
/// Thread-safe.
class CheckpointRestorer : public CheckpointWork {
 public:
  /// `done` is called once, last, on a thread of the restorer. `directory` and
  /// `backend` must outlive it.
  ///
  /// Errors given to `done`:
  ///   kNotFound            NO_SUCH_CHECKPOINT: it has no such table.
  ///   kFailedPrecondition  TABLE_DIFFERS: names the field.
  ///   kDataLoss            DAMAGED: names file and offset.
  static std::unique_ptr<CheckpointRestorer> Start(
      CheckpointDirectory& directory, kernels::Backend& backend,
      std::shared_ptr<ServedTable> table, std::string checkpoint,
      absl::AnyInvocable<void(absl::Status)> done);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_RESTORER_H_
