#ifndef ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CLUSTER_H_
#define ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/cluster_core.h"
#include "client/internal/shard_channel.h"
#include "kernels/backend.h"
#include "kernels/mutex.h"
#include "rowhouse/cluster.h"
#include "rowhouse/types.h"
#include "server/shard/shard.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::testing {

/// What becomes of a call on its way.
enum class Fault : uint8_t {
  kNone = 0,
  kLoseRequest = 1,  ///< Not made; the caller sees kUnavailable.
  kLoseAnswer = 2,   ///< Made; the caller sees kUnavailable.
  kRepeat = 3,       ///< Made twice; the caller sees the second answer.
};

/// Asked before each call, on its thread: may block it, to delay or reorder.
using FaultHook = std::function<Fault(int32_t server, std::string_view method)>;

/// Servers of a cluster in this process: the real shards, without a transport.
/// Clients that `Connect` makes have a hook each.
///
/// Thread-safe. Outlives its clients.
class InMemoryCluster {
 public:
  /// `thread_count`: of the arithmetic.
  explicit InMemoryCluster(int32_t server_count, int thread_count = 1);
  ~InMemoryCluster();

  /// Set before tables are made.
  server::ShardLimits& limits() { return limits_; }

  /// A client of all servers; `device` is whose memory it may pass.
  std::unique_ptr<client::Cluster> Connect(
      FaultHook hook = nullptr,
      std::shared_ptr<kernels::Backend> device = nullptr);

  /// Makes every call on a server fail, or work again.
  void SetDown(int32_t server, bool down);

  struct Table {
    client::TableSpec spec;
    std::unique_ptr<server::Shard> shard;
  };

  int32_t server_count() const { return server_count_; }

  // For the channels.
  bool IsDown(int32_t server) const;
  absl::StatusOr<Table*> Find(int32_t server, std::string_view table);
  absl::StatusOr<Table*> Create(int32_t server, std::string_view table,
                                const client::TableSpec& spec);
  absl::Status Delete(int32_t server, std::string_view table);
  std::vector<std::string> TableNames(int32_t server) const;

 private:
  const int32_t server_count_;
  server::ShardLimits limits_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<server::TimerQueue> timers_;
  mutable Mutex mutex_;
  std::vector<bool> down_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::map<std::string, Table, std::less<>>> tables_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CLUSTER_H_
