#ifndef ROWHOUSE_CLUSTER_H_
#define ROWHOUSE_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/observer.h"
#include "rowhouse/survey.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

namespace internal {
class ClusterCore;
}  // namespace internal

/// How a call is repeated after a fault that may pass.
struct RetryOptions {
  absl::Duration initial_backoff = absl::Milliseconds(20);
  absl::Duration max_backoff = absl::Seconds(2);
  double multiplier = 1.6;  ///< Of the backoff, after each failed try.
  double jitter = 0.2;      ///< Share of a backoff that is random.
};

/// TLS. All texts are PEM.
struct TlsOptions {
  std::string root_certificates;  ///< Empty: the system's.
  std::string certificate_chain;  ///< Empty: the client shows none.
  std::string private_key;
  std::string server_name;  ///< Expected in place of the address, if not empty.
};

/// The one-sided path, which a server on this host may offer to processes of
/// its user: rows are read in the server's own memory, which this process maps.
/// The library takes it where it is offered, and gRPC where it is not or fails;
/// results are the same.
struct OneSidedOptions {
  bool allow = true;  ///< False: gRPC only.
};

/// Links, by NCCL, from a GPU of this process to another one, which a server
/// works on, on this host or another: where a server offers them, this process
/// may use that GPU (`ClusterOptions::device_index`) and `libnccl.so.2` is
/// there, rows of large calls go over them, and others over gRPC; results are
/// the same. The one-sided path is taken before them.
struct NcclOptions {
  bool allow = true;  ///< False: none.
  /// Calls of fewer rows go over gRPC.
  int64_t least_row_count = 256;
  /// For how long calls wait, at first, for a link that is being made: those
  /// after it go over gRPC until it is there.
  absl::Duration patience = absl::Seconds(1);
};

struct ClusterOptions {
  /// In shard order, one a server: `host:port`, `ipv4:...`, `unix:path`.
  std::vector<std::string> addresses;
  std::string cluster_id;  ///< Must be the servers'; empty: not checked.
  absl::Duration connect_timeout = absl::Seconds(20);
  std::optional<TlsOptions> tls = std::nullopt;  ///< Without it: plain text.
  /// Idle time after which a connection is probed; a dead server is noticed
  /// after about twice as long. Not under the server's own minimum.
  absl::Duration keepalive = absl::Seconds(20);
  /// Connections to each server, in [1, 64]: pulls and pushes take turns on
  /// them, and one fills about one core on either side.
  int32_t connection_count = 2;
  RetryOptions retry;
  OneSidedOptions one_sided;
  NcclOptions nccl;
  /// The GPU of this process, by index, whose memory callers may pass where a
  /// method says so. Without it all memory is the host's, and where a server
  /// shares rows of its GPU, GPU 0 gathers them.
  std::optional<int> device_index = std::nullopt;
  Observer observer = nullptr;  ///< Told of the calls to shards.
  /// Asks every server who it is. Without it `Connect` calls none, and
  /// `Cluster::servers` is empty: to survey a cluster that is not whole.
  bool check_servers = true;
};

/// Which state of a table `Cluster::ReadRows` reads.
struct ReadOptions {
  absl::Duration timeout = absl::Seconds(60);
  /// Waits for the first state at or past this event.
  std::optional<int64_t> min_event = std::nullopt;
  /// Waits for this event's state and takes no other. Excludes `min_event`.
  std::optional<int64_t> exact_event = std::nullopt;
};

/// A connection to every server of a cluster; administers tables.
///
/// Table names are short, `{table}` of `tables/{table}`. Every call is retried
/// while its server is away, until the call's timeout. A fault of one server
/// names its address.
///
/// Thread-safe. May be destroyed before its trainers.
class Cluster {
 public:
  /// Connects to all servers and checks who answers.
  ///
  /// Errors:
  ///   kInvalidArgument     no address, or `connection_count` out of range.
  ///   kFailedPrecondition  SERVER_DIFFERS: a server of another cluster, index
  ///                        or server count; names the address.
  ///   kUnavailable         a server did not answer in `connect_timeout`.
  ///   kNotFound            there is no GPU of `device_index`;
  ///   kUnimplemented       this build uses none.
  static absl::StatusOr<std::unique_ptr<Cluster>> Connect(
      const ClusterOptions& options);

  explicit Cluster(std::shared_ptr<internal::ClusterCore> core);
  ~Cluster();

  /// Ends all calls that are under way, and all later ones, with kCancelled;
  /// those of its trainers too. For good: connect anew to go on.
  void CancelCalls();

  /// The servers as they were at connect, by index.
  const std::vector<ServerInfo>& servers() const;

  /// Asks every server, once and all at once, for what it is and holds. A
  /// server that is away does not keep the others from being told.
  std::vector<ServerState> Survey(const SurveyOptions& options = {});

  /// Creates a table on servers 0 .. shard_count - 1. The same spec again is
  /// OK, and completes a creation that failed on some servers.
  ///
  /// Errors:
  ///   kInvalidArgument    a bad spec; names the field.
  ///   kAlreadyExists      TABLE_DIFFERS.
  ///   kResourceExhausted  MEMORY: names the bytes that a shard would reserve.
  absl::StatusOr<TableInfo> CreateTable(std::string_view table,
                                        const TableSpec& spec,
                                        const CallOptions& options = {});

  /// Errors:
  ///   kNotFound  no such table on some of its servers.
  absl::StatusOr<TableInfo> GetTable(std::string_view table,
                                     const CallOptions& options = {});

  /// All tables, by name, as server 0 sees them: `event` and the reserved
  /// bytes are its own. Without imported sign pools.
  absl::StatusOr<std::vector<TableInfo>> ListTables(
      const CallOptions& options = {});

  /// Deletes a table; servers that have none of it are passed over.
  ///
  /// Errors:
  ///   kNotFound  no server has it.
  absl::Status DeleteTable(std::string_view table,
                           const CallOptions& options = {});

  /// Returns a table to event 0 and its initial rows, and closes all sessions.
  /// No trainer may be at work on it.
  absl::Status ResetTable(std::string_view table,
                          const CallOptions& options = {});

  /// Changes the trainer count from `from_event` on; 0 takes the first event
  /// possible: the highest applied on a shard, plus 3. Returns the event.
  ///
  /// Errors:
  ///   kFailedPrecondition  EVENT_PAST: too early for some shard. While
  ///                        trainers step, name an event further ahead.
  absl::StatusOr<int64_t> UpdateTrainerCount(std::string_view table,
                                             int32_t trainer_count,
                                             int64_t from_event = 0,
                                             const CallOptions& options = {});

  /// Overwrites the weights of consecutive rows from `first_row_id` on: `rows`
  /// is [_, dim] of the row type. Before event 1 only. Not atomic over calls
  /// and shards; safe to repeat.
  ///
  /// Errors:
  ///   kInvalidArgument     `rows` is not whole rows.
  ///   kOutOfRange          ROW_OUT_OF_TABLE.
  ///   kFailedPrecondition  EVENT_PAST.
  absl::Status ImportRows(std::string_view table, int64_t first_row_id,
                          std::span<const std::byte> rows,
                          const CallOptions& options = {});

  /// Copies rows `row_ids`, in any order, repeats allowed, to `out`: [_, dim]
  /// of the row type, the host's or the GPU's. All of one event, which is
  /// returned. Needs no session.
  ///
  /// Errors as `Trainer::Pull`.
  absl::StatusOr<int64_t> ReadRows(std::string_view table,
                                   std::span<const int64_t> row_ids,
                                   std::span<std::byte> out,
                                   const ReadOptions& options = {});

  /// The digest as of one event on all shards: `exact_event`, for which it
  /// waits, or the newest.
  ///
  /// Errors:
  ///   kFailedPrecondition  EVENT_PAST: some shard is past `exact_event`.
  ///   kDeadlineExceeded    EVENT_PENDING.
  absl::StatusOr<TableDigest> Digest(
      std::string_view table, std::optional<int64_t> exact_event = std::nullopt,
      const CallOptions& options = {});

  /// The library's own.
  const std::shared_ptr<internal::ClusterCore>& core() const { return core_; }

 private:
  std::shared_ptr<internal::ClusterCore> core_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_CLUSTER_H_
