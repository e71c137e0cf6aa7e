#ifndef ROWHOUSE_SERVER_SHARD_OPENED_SNAPSHOT_H_
#define ROWHOUSE_SERVER_SHARD_OPENED_SNAPSHOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/shard/snapshot.h"
#include "server/shard/snapshot_chunks.h"
#include "server/shard/snapshot_rows.h"

namespace rowhouse::server {

/// A snapshot as the shard has it: armed, cut, or ended.
///
/// The lane's; what is set once it is cut may then be read from any thread, and
/// the counts at any time.
struct OpenedSnapshot {
  SnapshotRequest request;
  std::shared_ptr<Call> call;
  std::shared_ptr<const ChunkLayout> layout;
  std::shared_ptr<SnapshotChunks> chunks;
  std::optional<int64_t> base_event;

  // Once it is cut.
  ShardState state;
  std::unique_ptr<SnapshotRows> rows = nullptr;

  absl::Status ended = absl::OkStatus();  // Why it has, or OK.
  // The call that waits for the cut, and that for a piece.
  absl::AnyInvocable<void(absl::Status)> cut_done = nullptr;
  Done<std::unique_ptr<SnapshotPiece>> next_done = nullptr;
  // Since when a commit has been waiting for room.
  std::optional<absl::Time> wait_since = std::nullopt;

  std::atomic<int64_t> before_image_row_count = 0;
  std::atomic<int64_t> event_wait_nanoseconds = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_OPENED_SNAPSHOT_H_
