#ifndef ROWHOUSE_CLIENT_PUSH_LOG_SHARD_STREAMS_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_SHARD_STREAMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/cluster_core.h"
#include "client/internal/record_stream.h"
#include "client/push_log/push_log.h"
#include "client/push_log/stream_readers.h"

namespace rowhouse::client::push_log {

/// Parts of an event.
int64_t PartCount(const internal::RecordedEvent& event);

/// Whether a piece is the last of its part.
bool EndsPart(const internal::RecordedPart& piece);

/// The recordings of all shards of a table, begun with one event.
///
/// Thread-compatible.
class ShardStreams {
 public:
  /// All must outlive it. `stop` ends all reads.
  ShardStreams(internal::ClusterCore& cluster, const TableInfo& table,
               const RecordOptions& options, internal::Cancellation& stop)
      : cluster_(cluster), table_(table), options_(options), stop_(stop) {}

  /// Begins. The event is the newest that some shard had applied: a commit that
  /// is on its way may have reached some shards only. There is a digest if all
  /// began with it, for which several beginnings are tried.
  absl::Status Open();

  // After `Open`.
  int32_t shard_count() const {
    return static_cast<int32_t>(table_.shards.size());
  }
  int64_t start_event() const { return starts_[newest_].event; }
  const std::vector<TrainerCountChange>& trainer_counts() const {
    return starts_[newest_].trainer_counts;
  }
  const std::vector<internal::RecordingStart>& starts() const {
    return starts_;
  }
  const std::optional<TableDigest>& start_digest() const { return digest_; }

  /// The next event of a shard, after all pieces of the one before; nothing
  /// after the last that was asked for.
  absl::StatusOr<std::optional<internal::RecordedEvent>> ReadEvent(
      int32_t shard);
  /// The next piece of a shard's event.
  absl::StatusOr<internal::RecordedPart> ReadPart(int32_t shard);

  /// What the first stream that failed ended with, which ends the others; OK as
  /// long as all go on.
  absl::Status fault() const {
    return readers_ == nullptr ? absl::OkStatus() : readers_->fault();
  }

  /// Lets go of the streams, and of what the shards hold for them.
  void Close();

 private:
  absl::Status OpenOnce();
  absl::Status OpenShard(int32_t shard, internal::ShardChannel& channel);
  absl::Status SkipToStart(int32_t shard);
  absl::Status MergeDigest();

  internal::ClusterCore& cluster_;
  const TableInfo& table_;
  const RecordOptions& options_;
  internal::Cancellation stop_;
  std::vector<std::unique_ptr<internal::RecordStream>> streams_;  // By shard.
  std::vector<internal::RecordingStart> starts_;                  // By shard.
  size_t newest_ = 0;  // Of the starts.
  std::optional<TableDigest> digest_;
  std::unique_ptr<StreamReaders> readers_;  // After `Open`; uses the streams.
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_SHARD_STREAMS_H_
