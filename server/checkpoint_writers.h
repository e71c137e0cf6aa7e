#ifndef ROWHOUSE_SERVER_CHECKPOINT_WRITERS_H_
#define ROWHOUSE_SERVER_CHECKPOINT_WRITERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/checkpoint_work.h"
#include "server/checkpoints.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// A shard to be written.
struct ShardToSave {
  std::shared_ptr<ServedTable> table;
  int64_t event = 0;
};

/// Writes all of a server's shards of a checkpoint at once. When one fails the
/// others are cancelled, and what all have written is removed. `armed` is
/// called when all are armed, `done` at the end, with the first failure.
/// `checkpoints` must outlive it.
std::unique_ptr<CheckpointWork> WriteShards(
    Checkpoints& checkpoints, const std::string& checkpoint,
    const std::string& base, std::vector<ShardToSave> shards,
    absl::AnyInvocable<void()> armed,
    absl::AnyInvocable<void(absl::Status)> done);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_WRITERS_H_
