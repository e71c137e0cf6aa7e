#ifndef ROWHOUSE_CLIENT_INTERNAL_CLUSTER_CORE_H_
#define ROWHOUSE_CLIENT_INTERNAL_CLUSTER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "client/internal/clock.h"
#include "client/internal/retry.h"
#include "client/internal/shard_channel.h"
#include "client/internal/worker_pool.h"
#include "kernels/backend.h"
#include "rowhouse/cluster.h"

namespace rowhouse::client::internal {

/// `status`, its message led by the server it came from; keeps the details.
absl::Status AtAddress(const absl::Status& status, std::string_view address);

/// Errors:
///   kFailedPrecondition  SERVER_DIFFERS: another `cluster_id`, if that is not
///                        empty, or another place among the servers.
absl::Status CheckServer(const ServerInfo& info, std::string_view cluster_id,
                         int32_t index, int32_t count);

/// The channels to all servers, and what calls on them need. Never destroyed on
/// a thread of its own pool.
///
/// Thread-safe.
class ClusterCore {
 public:
  /// `device`: whose memory callers may pass, or null.
  ClusterCore(std::vector<std::unique_ptr<ShardChannel>> channels,
              std::unique_ptr<Clock> clock, const RetryOptions& retry,
              std::shared_ptr<kernels::Backend> device = nullptr)
      : device_(std::move(device)),
        channels_(std::move(channels)),
        clock_(std::move(clock)),
        retry_(retry) {}

  /// Asks every server who it is.
  ///
  /// Errors: those of `Cluster::Connect`.
  absl::Status CheckServers(std::string_view cluster_id,
                            const CallContext& context);

  int32_t server_count() const {
    return static_cast<int32_t>(channels_.size());
  }
  ShardChannel& channel(int32_t server) const { return *channels_[server]; }
  Clock& clock() const { return *clock_; }
  const RetryOptions& retry() const { return retry_; }
  WorkerPool& pool() { return pool_; }
  const std::vector<ServerInfo>& servers() const { return servers_; }

  const std::shared_ptr<kernels::Backend>& device() const { return device_; }

  /// The device in whose memory `buffer` is; null where it is the host's.
  ///
  /// Errors:
  ///   kInvalidArgument  it is another device's, or in part.
  absl::StatusOr<kernels::Backend*> DeviceOf(
      std::span<const std::byte> buffer) const;

  /// Ends all calls, those of trainers too; what ends some is a child of it.
  Cancellation& stop() { return stop_; }

  CallContext Context(absl::Duration timeout) {
    return Context(timeout, stop_);
  }
  CallContext Context(absl::Duration timeout,
                      Cancellation& cancellation) const {
    return {clock_->Now() + timeout, &cancellation};
  }

  /// Repeats `call` on one server while that makes sense.
  absl::Status CallServer(
      int32_t server, const CallContext& context,
      absl::FunctionRef<absl::Status(ShardChannel&)> call) const;

  /// The same on servers 0 .. count - 1, all at once.
  absl::Status CallServers(
      int32_t count, const CallContext& context,
      absl::FunctionRef<absl::Status(int32_t, ShardChannel&)> call);

 private:
  const std::shared_ptr<kernels::Backend> device_;
  std::vector<std::unique_ptr<ShardChannel>> channels_;
  std::unique_ptr<Clock> clock_;
  RetryOptions retry_;
  std::vector<ServerInfo> servers_;
  Cancellation stop_;
  WorkerPool pool_;  // Last: its threads use the rest.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CLUSTER_CORE_H_
