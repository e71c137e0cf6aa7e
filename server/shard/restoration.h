#ifndef ROWHOUSE_SERVER_SHARD_RESTORATION_H_
#define ROWHOUSE_SERVER_SHARD_RESTORATION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace rowhouse::server {

/// Overwrites a shard with rows from elsewhere. Until `Finish` is done the
/// shard serves nothing (NOT_RESTORED), and so it stays when this is destroyed
/// earlier. Must not outlive its shard.
///
/// Thread-compatible.
class Restoration {
 public:
  virtual ~Restoration() = default;

  /// Overwrites consecutive rows; `columns` are host memory, one an entry of
  /// `RowColumnsOf`, that stays valid until `done`. One call at a time.
  ///
  /// Errors:
  ///   kDataLoss  a row's last event is past that of the state; names it.
  virtual void Write(int64_t first_slot, int64_t row_count,
                     std::vector<std::span<const std::byte>> columns,
                     absl::AnyInvocable<void(absl::Status)> done) = 0;

  /// The shard serves again.
  ///
  /// Errors:
  ///   kInternal  not all rows were written.
  virtual void Finish(absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_RESTORATION_H_
