#ifndef ROWHOUSE_CHECKPOINT_H_
#define ROWHOUSE_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/cluster.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

/// How far a long call is, over all servers.
struct CheckpointProgress {
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;  ///< 0 until every server has told its own.
  /// Rows that an event was about to change and that were written ahead of it.
  int64_t before_image_row_count = 0;
  absl::Duration event_wait;  ///< For how long events waited for room.
};

/// Told how far a call is, on the thread that waits for it; false cancels it.
using CheckpointWatcher = std::function<bool(const CheckpointProgress&)>;

/// For calls that read or write files.
struct CheckpointCallOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  CheckpointWatcher watcher = nullptr;
};

/// What is to be written.
struct CheckpointPlan {
  struct Table {
    std::string name;
    /// Not set: the highest event that is applied on a shard now.
    std::optional<int64_t> event = std::nullopt;
  };

  /// A lower case letter, then such, digits, `-` and `_`; 63 at most.
  std::string name;
  std::vector<Table> tables;
  /// A checkpoint of the same tables: of sparse ones only rows that changed
  /// since are written. Empty: all rows are.
  std::string base = "";
  int32_t trainer_state_count = 0;  ///< Of ranks 0 .. n - 1; it waits for all.
};

/// A whole checkpoint.
struct CheckpointInfo {
  struct Table {
    std::string name;
    int64_t event = 0;
    /// Not set in lists.
    std::optional<TableSpec> spec = std::nullopt;
    int64_t saved_row_count = 0;  ///< With a base those that changed.
    int64_t size_bytes = 0;       ///< Of its files.
  };

  std::string name;
  absl::Time create_time;
  std::vector<Table> tables;  ///< By name.
  int32_t trainer_state_count = 0;
  std::string base;        ///< Empty: it has all rows itself.
  int64_t size_bytes = 0;  ///< Of all its files.
};

/// A checkpoint that has become whole, and those that were deleted for it, of
/// which the servers keep so many.
struct PublishedCheckpoint {
  CheckpointInfo checkpoint;
  std::vector<std::string> deleted_names;  ///< Oldest first.
};

/// How the tables of one name in two checkpoints compare.
struct CheckpointTableDiff {
  std::string name;
  /// Not set: not in the first one.
  std::optional<int64_t> event = std::nullopt;
  /// Not set: not in the other.
  std::optional<int64_t> other_event = std::nullopt;
  bool shape_differs = false;  ///< Their rows are not compared then.
  int64_t differing_row_count = 0;
  std::optional<int64_t> first_differing_row_id = std::nullopt;

  /// Whether both are there and every row has the same bits.
  bool equal() const {
    return event.has_value() && other_event.has_value() && !shape_differs &&
           differing_row_count == 0;
  }
};

/// Which tables of a checkpoint are restored, and onto how many shards.
struct RestorePlan {
  struct Table {
    std::string name;
    /// Not set: as many as the table has; where there is none as it had.
    std::optional<int32_t> shard_count = std::nullopt;
  };

  std::string name;
  std::vector<Table> tables = {};  ///< Empty: all, each with the next count.
  std::optional<int32_t> shard_count = std::nullopt;
};

/// A checkpoint that is being written, from the time on when every shard is
/// armed: it will be cut at the event it is to be of.
///
/// Thread-compatible. May outlive the cluster.
class CheckpointJob {
 public:
  virtual ~CheckpointJob() = default;

  /// What is written, with the event of each table.
  virtual const CheckpointPlan& plan() const = 0;

  /// Waits until all is on disk and every trainer has handed its state in, and
  /// makes the checkpoint whole. To be called once. After an error nothing is
  /// left of it, unless server 0 cannot be asked to remove it.
  ///
  /// Errors:
  ///   kFailedPrecondition  CHECKPOINT_INCOMPLETE: some state was not handed in
  ///                        in time; names the rank.
  ///   kResourceExhausted   NOT_WRITABLE: the disk is full; names the file.
  ///   kUnavailable         a server went away; names its address.
  ///   kDeadlineExceeded    it was not written in time.
  ///   kCancelled           the watcher or `Cluster::CancelCalls`.
  virtual absl::StatusOr<PublishedCheckpoint> Await(
      const CheckpointCallOptions& options = {}) = 0;
};

/// Checkpoints of a cluster: sets of tables, each as of one event, in a
/// directory that its servers share.
///
/// All names are short, `{checkpoint}` of `checkpoints/{checkpoint}`. Where the
/// servers have no such directory every method ends kFailedPrecondition
/// (NO_CHECKPOINT_DIRECTORY); where there is no such checkpoint, kNotFound
/// (NO_SUCH_CHECKPOINT). Calls with a watcher read or write files and are made
/// once: a server that goes away meanwhile ends them kUnavailable. The others
/// are repeated as those of `Cluster`.
///
/// Thread-safe. May outlive the cluster.
class Checkpoints {
 public:
  explicit Checkpoints(const Cluster& cluster) : core_(cluster.core()) {}

  /// Arms every shard of the tables, and returns when all are: events that
  /// trainers commit from then on are in it, or not, as the plan says. Writing
  /// goes on until the job's end; its destructor cancels it and removes what is
  /// there. Where a shard is writing another one it waits for that.
  ///
  /// Errors:
  ///   kAlreadyExists       CHECKPOINT_EXISTS.
  ///   kNotFound            there is no such table, or no such base.
  ///   kFailedPrecondition  EVENT_PAST: a shard is past the event. NO_BASE.
  ///   kResourceExhausted   CHECKPOINTS_OPEN: some shard was writing another
  ///   one
  ///                        all the time.
  absl::StatusOr<std::unique_ptr<CheckpointJob>> Start(
      CheckpointPlan plan, const CallOptions& options = {});

  /// Hands in what trainer `rank` needs to go on from a checkpoint that is
  /// being written. Again overwrites it.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS: it is whole.
  absl::Status PutTrainerState(std::string_view checkpoint, int32_t rank,
                               std::span<const std::byte> state,
                               const CallOptions& options = {});

  /// Returns what was handed in.
  absl::StatusOr<std::vector<std::byte>> GetTrainerState(
      std::string_view checkpoint, int32_t rank,
      const CallOptions& options = {});

  /// The whole checkpoints, oldest first.
  absl::StatusOr<std::vector<CheckpointInfo>> List(
      const CallOptions& options = {});

  absl::StatusOr<CheckpointInfo> Get(std::string_view checkpoint,
                                     const CallOptions& options = {});

  /// Deletes a checkpoint, whole or not.
  ///
  /// Errors:
  ///   kFailedPrecondition  CHECKPOINT_IN_USE: it is the base of another one.
  absl::Status Delete(std::string_view checkpoint,
                      const CallOptions& options = {});

  /// Reads all of a checkpoint, and of those it is based on.
  ///
  /// Errors:
  ///   kDataLoss  DAMAGED: names the file and the offset.
  absl::Status Verify(std::string_view checkpoint,
                      const CheckpointCallOptions& options = {});

  /// Compares two checkpoints: all tables of either, by name.
  ///
  /// Errors: those of `Verify`.
  absl::StatusOr<std::vector<CheckpointTableDiff>> Diff(
      std::string_view checkpoint, std::string_view other,
      const CheckpointCallOptions& options = {});

  /// Writes all rows of `checkpoint`, which is based on others, as a checkpoint
  /// of its own.
  ///
  /// Errors: those of `Verify`, and
  ///   kAlreadyExists      CHECKPOINT_EXISTS.
  ///   kResourceExhausted  NOT_WRITABLE.
  absl::Status Compact(std::string_view checkpoint,
                       std::string_view compact_name,
                       const CheckpointCallOptions& options = {});

  /// Overwrites tables with what a checkpoint has of them, and creates those
  /// that are missing. All their sessions are closed. Returns the tables.
  ///
  /// No step of its own for all shards: each serves again as soon as it has all
  /// its rows. After a failure some are restored, some as they were, and those
  /// that it had begun serve nothing, NOT_RESTORED, until they are restored,
  /// reset or deleted: restore again before anybody trains.
  ///
  /// Errors: those of `Verify` and `Cluster::CreateTable`, and
  ///   kInvalidArgument     a table twice, or a bad shard count.
  ///   kFailedPrecondition  TABLE_DIFFERS: the table that is there has another
  ///                        spec, or shard count than is asked for.
  absl::StatusOr<std::vector<TableInfo>> Restore(
      const RestorePlan& plan, const CheckpointCallOptions& options = {});

 private:
  std::shared_ptr<internal::ClusterCore> core_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_CHECKPOINT_H_
