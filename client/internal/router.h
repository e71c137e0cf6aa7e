#ifndef ROWHOUSE_CLIENT_INTERNAL_ROUTER_H_
#define ROWHOUSE_CLIENT_INTERNAL_ROUTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cluster_core.h"
#include "client/internal/pull_gate.h"
#include "client/internal/row_split.h"
#include "client/internal/shard_channel.h"
#include "proto/wire/placement.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// Rows of the caller's, in memory of `device` or, where that is null, of the
/// host.
struct RowBuffer {
  std::byte* rows = nullptr;
  kernels::Backend* device = nullptr;
};

/// What a pull returned: the share of each shard, and the handles of its calls.
struct PulledRows {
  int64_t event = 0;
  std::shared_ptr<const RowSplit> split;
  /// By shard, in the order of its rows; empty without handles, of the whole
  /// or of a shard.
  std::vector<std::vector<int64_t>> handles;
};

struct RoutedPull {
  std::optional<TrainerSession> trainer = std::nullopt;
  std::optional<int64_t> min_event = std::nullopt;
  std::optional<int64_t> exact_event = std::nullopt;
  bool training = false;
};

struct RoutedPush {
  TrainerSession trainer;
  int64_t event = 0;
  int32_t part = 0;
  const PulledRows* rows = nullptr;  ///< Handles are used where there are any.
  const std::byte* gradients = nullptr;
  kernels::Backend* device = nullptr;  ///< Whose memory they are; null: host's.
  std::optional<int32_t> seal_part_count = std::nullopt;
};

/// Errors:
///   kInvalidArgument  both are set.
absl::Status CheckReadEvents(std::optional<int64_t> min_event,
                             std::optional<int64_t> exact_event);

/// Splits calls on one table over its shards and merges their answers.
///
/// Thread-safe.
class Router {
 public:
  /// Errors:
  ///   kInternal  the servers gave bounds that are none.
  static absl::StatusOr<std::unique_ptr<Router>> Make(
      std::shared_ptr<ClusterCore> cluster, TableInfo table);

  const TableInfo& table() const { return table_; }
  const wire::Placement& placement() const { return placement_; }
  int32_t shard_count() const { return placement_.shard_count(); }
  ClusterCore& cluster() const { return *cluster_; }

  /// Payload bytes of a message of pushes; tests set others.
  void set_message_bytes(int64_t bytes) { message_bytes_ = bytes; }

  /// Makes a call on every shard, all at once, with retries.
  absl::Status CallShards(
      const CallContext& context,
      absl::FunctionRef<absl::Status(int32_t, ShardChannel&)> call) const {
    return cluster_->CallServers(shard_count(), context, call);
  }

  /// Lands the rows of `split` in `out`; all of one event.
  absl::StatusOr<std::shared_ptr<const PulledRows>> Pull(
      std::shared_ptr<const RowSplit> split, RowBuffer out,
      const RoutedPull& pull, PullGate& gate, const CallContext& context) const;

  /// Lands `rows` again, by handle where the shard still has it.
  absl::Status Repull(const PulledRows& rows, RowBuffer out,
                      TrainerSession trainer, PullGate& gate,
                      const CallContext& context) const;

  /// Sends a part to every shard; returns whether one had it already.
  absl::StatusOr<bool> Push(const RoutedPush& push,
                            const CallContext& context) const;

 private:
  struct ShardPull;
  struct PullJob;

  Router(std::shared_ptr<ClusterCore> cluster, TableInfo table,
         wire::Placement placement);

  absl::Status PullRun(const PullJob& job, int32_t shard, PullCall call,
                       int64_t first, int64_t count, PullAnswer& answer) const;
  absl::Status PullShard(const PullJob& job, int32_t shard,
                         const RoutedPull& pull, ShardPull& result) const;
  absl::Status PullOnce(const PullJob& job, RoutedPull& pull,
                        std::vector<ShardPull>& results) const;
  absl::Status RepullShard(const PullJob& job, const PulledRows& rows,
                           TrainerSession trainer, int32_t shard) const;
  absl::StatusOr<PushAnswer> PushShard(const RoutedPush& push, int32_t shard,
                                       const CallContext& context) const;

  std::shared_ptr<ClusterCore> cluster_;
  TableInfo table_;
  wire::Placement placement_;
  int64_t pull_row_count_;  // Of one call.
  std::atomic<int64_t> message_bytes_ = int64_t{1} << 20;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_ROUTER_H_
