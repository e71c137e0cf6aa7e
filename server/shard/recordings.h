#ifndef ROWHOUSE_SERVER_SHARD_RECORDINGS_H_
#define ROWHOUSE_SERVER_SHARD_RECORDINGS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/shard/recording.h"

namespace rowhouse::server {

/// The recordings of a shard.
///
/// Thread-compatible.
class Recordings {
 public:
  /// Under way at once.
  static constexpr int32_t kMost = 4;

  /// Those that take events; the bytes are of the fullest buffer.
  struct Load {
    int32_t count = 0;
    int64_t held_bytes = 0;
    int64_t buffer_bytes = 0;
  };
  Load DescribeLoad() const;

  /// Whether none takes events.
  bool empty() const { return recordings_.empty(); }

  /// Errors:
  ///   kResourceExhausted  RECORDINGS_OPEN, with a retry delay.
  absl::Status CheckRoom() const;

  /// REQUIRES: there is room.
  void Add(std::shared_ptr<Recording> recording) {
    recordings_.push_back(std::move(recording));
  }

  /// Whether one wants the digest with this event.
  bool WantsDigest(int64_t event) const;

  /// Gives an event to all.
  void Record(const Recording::Event& event, int64_t size_bytes);

  /// Ends all.
  void EndAll(const absl::Status& reason);

  /// Ends those whose callers have gone, and forgets those that have ended.
  void EndCancelled();

 private:
  void DropFinished();

  std::vector<std::shared_ptr<Recording>> recordings_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_RECORDINGS_H_
