#ifndef ROWHOUSE_CLIENT_PUSH_LOG_STREAM_READERS_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_STREAM_READERS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/cluster_core.h"
#include "client/internal/record_stream.h"
#include "kernels/mutex.h"

namespace rowhouse::client::push_log {

/// Reads the streams of all shards at once, each on a thread of its own: the
/// first that fails ends the others, whichever of them is waited for.
///
/// A few messages of a shard are read ahead of their use. While an event is
/// waited for there is no limit, for a stream that nobody reads shows no fault;
/// what comes then is what that event's shard still holds or has not applied.
///
/// Thread-compatible.
class StreamReaders {
 public:
  using Message = std::optional<internal::RecordMessage>;

  /// `streams` are by shard, and end with `stop`. All must outlive it.
  StreamReaders(
      const internal::ClusterCore& cluster,
      const std::vector<std::unique_ptr<internal::RecordStream>>& streams,
      internal::Cancellation& stop);
  /// Ends the streams.
  ~StreamReaders();
  StreamReaders(const StreamReaders&) = delete;
  StreamReaders& operator=(const StreamReaders&) = delete;

  /// The next message of a shard; nothing after its last. `event`: it is one,
  /// or nothing. Errors: `fault`, once what came before it is used up.
  absl::StatusOr<Message> Next(int32_t shard, bool event);

  /// What the first stream that failed ended with, and its server; or OK.
  absl::Status fault() const;

 private:
  void Run(int32_t shard);
  // Returns whether to go on.
  bool Add(int32_t shard, absl::StatusOr<Message> message);

  const internal::ClusterCore& cluster_;
  const std::vector<std::unique_ptr<internal::RecordStream>>& streams_;
  internal::Cancellation& stop_;
  mutable Mutex mutex_;
  CondVar changed_;
  // Each by shard.
  std::vector<std::deque<Message>> ahead_ ABSL_GUARDED_BY(mutex_);
  bool awaits_event_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // Last: they use the rest.
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_STREAM_READERS_H_
