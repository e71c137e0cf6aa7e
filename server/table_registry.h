#ifndef ROWHOUSE_SERVER_TABLE_REGISTRY_H_
#define ROWHOUSE_SERVER_TABLE_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/table.pb.h"
#include "server/admin_thread.h"
#include "server/imports.h"
#include "server/shard/shard.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::server {

/// A table as this server has it.
struct ServedTable {
  std::string name;
  v1::TableSpec spec;  ///< Canonical (service/spec_validation.h).
  std::atomic<int64_t> reserved_bytes = 0;  ///< The most of those below.
  std::unique_ptr<Shard> shard;
  Imports imports = {};  ///< Those under way.
  // The registry's, under its mutex.
  int64_t needed_bytes = 0;                  ///< By what the table is now.
  std::multiset<int64_t> wanted_bytes = {};  ///< By changes under way.
};

struct CreatedTable {
  std::shared_ptr<ServedTable> table;
  bool existed = false;
};

/// The tables of one server, by name, and the memory that they may reserve.
///
/// Tables are made and freed one at a time on a thread of the registry, so
/// neither callers nor reads of the map wait for it. A second creation of a
/// name under way is done after the first, and finds the table. A table that
/// callers still hold lives, and counts, until they let go.
///
/// Thread-safe.
class TableRegistry {
 public:
  struct Options {
    int32_t server_index = 0;
    int32_t server_count = 1;
    int64_t memory_limit_bytes = 0;
    ShardLimits limits;
  };

  /// `backend` and `timers` must outlive it.
  TableRegistry(const Options& options, kernels::Backend& backend,
                TimerQueue& timers);

  /// Closes all tables (UNAVAILABLE, DRAINING) and frees them.
  ///
  /// REQUIRES: nobody holds a table.
  ~TableRegistry();

  /// Errors:
  ///   kInvalidArgument  BAD_NAME.
  ///   kNotFound         NO_SUCH_TABLE.
  absl::StatusOr<std::shared_ptr<ServedTable>> Find(std::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// The shard of `Find`; it keeps its table.
  absl::StatusOr<std::shared_ptr<Shard>> FindShard(std::string_view name) const;

  /// Tables with names after `name`, ascending, at most `max_count`.
  std::vector<std::shared_ptr<ServedTable>> ListAfter(std::string_view name,
                                                      int64_t max_count) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Makes this server's shard of a table; `done` is called on the registry's
  /// thread, or at once when the request is wrong. A call that has ended before
  /// its turn came changes nothing.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_NAME, BAD_SPEC, BAD_BOUNDS.
  ///   kFailedPrecondition  NOT_PLACED: no shard of it is on this server.
  ///   kAlreadyExists       TABLE_DIFFERS.
  ///   kResourceExhausted   MEMORY.
  void Create(std::string name, const v1::TableSpec& spec,
              std::shared_ptr<Call> call, Done<CreatedTable> done);

  /// Takes a table out of the map and ends its waiting calls; `done` is called
  /// on the registry's thread.
  ///
  /// Errors:
  ///   kInvalidArgument  BAD_NAME.
  ///   kNotFound         NO_SUCH_TABLE.
  void Delete(std::string name, std::shared_ptr<Call> call,
              absl::AnyInvocable<void(absl::Status)> done);

  /// Begins a change of `table`: reserves what it needs for `trainer_count`
  /// trainers, where it has less. Returns that need, for `EndChange`. Any
  /// number of changes may be under way.
  ///
  /// Errors:
  ///   kResourceExhausted  MEMORY.
  absl::StatusOr<int64_t> BeginChange(ServedTable& table, int32_t trainer_count)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Ends a change. One that was not made gives back what neither the table nor
  /// another change needs.
  void EndChange(ServedTable& table, int64_t wanted_bytes, bool made)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Reserves bytes for what is no table, named `what`, until the last copy of
  /// the result goes. The registry must outlive it.
  ///
  /// Errors:
  ///   kResourceExhausted  MEMORY.
  absl::StatusOr<std::shared_ptr<void>> ReserveAside(std::string_view what,
                                                     int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t reserved_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  kernels::Backend& backend() const { return backend_; }
  const Options& options() const { return options_; }
  absl::Time Now() const { return timers_.Now(); }

 private:
  using Tables =
      std::map<std::string, std::shared_ptr<ServedTable>, std::less<>>;

  absl::StatusOr<v1::TableSpec> CheckCreation(const std::string& name,
                                              const v1::TableSpec& spec) const;
  absl::StatusOr<CreatedTable> CreateNow(const std::string& name,
                                         const v1::TableSpec& canonical);
  std::shared_ptr<ServedTable> Own(ServedTable* table);
  absl::Status DeleteNow(const std::string& name);
  // Counts bytes against the limit, and takes them from the device.
  absl::Status Reserve(std::string_view name, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetAside(std::string_view name, int64_t bytes);
  absl::Status CountLocked(std::string_view name, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  kernels::Backend& backend_;
  TimerQueue& timers_;
  mutable Mutex mutex_;
  Tables tables_ ABSL_GUARDED_BY(mutex_);
  int64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  AdminThread admin_;  // Last: its tasks use the members above.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TABLE_REGISTRY_H_
