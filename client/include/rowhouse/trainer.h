#ifndef ROWHOUSE_TRAINER_H_
#define ROWHOUSE_TRAINER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/cluster.h"
#include "rowhouse/row_set.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

namespace internal {
class TrainerCore;
}  // namespace internal

/// Decides once the merged gradient is known. Runs on a thread of the library,
/// again if the statistics have to be read again; must not call the trainer. An
/// error leaves the event open: `Trainer::Commit` decides again.
using DecideEvent =
    std::function<absl::StatusOr<EventUpdate>(const GradientStatistics&)>;

using CommitDecision =
    std::variant<SkipEvent, RowAdamScalars, AdamWScalars, DecideEvent>;

struct JoinOptions {
  absl::Duration timeout = absl::Seconds(60);
};

struct PullOptions {
  absl::Duration timeout = absl::Seconds(60);
  /// Waits for the first state at or past this event.
  std::optional<int64_t> min_event = std::nullopt;
  /// Waits for this event's state and takes no other. Excludes `min_event`.
  std::optional<int64_t> exact_event = std::nullopt;
  /// The rows' gradients are going to be pushed: asks for handles, and for the
  /// rows' second moments to be brought current.
  bool training = true;
};

struct PushOptions {
  absl::Duration timeout = absl::Seconds(60);
  /// Number of the part within this trainer's contribution to the event. Left
  /// out, it is the next one; a failed push may be repeated by the same call.
  /// Pushes to one event from several threads name their own: numbers give the
  /// order of summation.
  std::optional<int32_t> part = std::nullopt;
  /// Seals the contribution with this part, which is then its last.
  bool seal = false;
};

struct PushResult {
  int32_t part = 0;
  bool duplicate = false;  ///< Some shard had accepted it before.
};

/// One life of a trainer on one table: reads rows, contributes gradients to
/// events, and, as rank 0, commits events.
///
/// A contribution to event e is any number of parts, pushes and head calls
/// (`LmHead`), and one seal; e is applied when every rank has sealed and rank 0
/// committed. Contributions to e + 1 may begin before e is applied. A newer
/// trainer of the same rank fences this one: its calls end kAborted (FENCED).
///
/// Calls are split over shards and message sizes, sent in parallel, and retried
/// (kUnavailable, kResourceExhausted, a pending event) until their timeout;
/// after one that failed, the same call again is safe and counts once.
/// Reasons of faults are those of the wire protocol.
///
/// Row ids, rows and gradients may be in memory of the GPU that
/// `ClusterOptions::device_index` names: a span of it is passed as one of the
/// host's. Rows that a server shares with this process are then gathered
/// straight into it; over gRPC they come by way of page-locked memory. What a
/// call reads must be complete before it begins; what it wrote is, for every
/// stream, when it returns. Memory of another GPU is kInvalidArgument.
///
/// Thread-safe. Destroying it ends all its calls with kCancelled; contributions
/// that were not sealed are dropped by its successor.
class Trainer {
 public:
  /// Opens a session as `rank` on every shard of the table, replacing an older
  /// trainer of this rank: what that one had sealed on every shard stands, all
  /// else of it is dropped.
  ///
  /// Errors:
  ///   kNotFound         no such table.
  ///   kInvalidArgument  `rank` is not in [0, trainer_count).
  ///   kAborted          other trainers of this rank kept opening sessions.
  static absl::StatusOr<std::unique_ptr<Trainer>> Join(
      const Cluster& cluster, std::string_view table, int32_t rank,
      const JoinOptions& options = {});

  explicit Trainer(std::shared_ptr<internal::TrainerCore> core);
  ~Trainer();

  const TableInfo& table() const;  ///< As it was at `Join`.
  int32_t rank() const;
  int64_t session() const;

  /// The first event that this rank has not sealed.
  int64_t next_event() const;

  /// Rank 0: the first event without a decision. After `Join` it may be below
  /// `next_event`: the predecessor had sealed it and its decision is lost;
  /// `Commit` it first.
  int64_t next_commit() const;

  /// Copies rows `row_ids`, in any order, repeats allowed, to `out`: [_, dim]
  /// of the row type. All of one event.
  ///
  /// Errors:
  ///   kInvalidArgument     `out` has another size.
  ///   kOutOfRange          ROW_OUT_OF_TABLE: names the first bad position.
  ///   kFailedPrecondition  EVENT_PAST: `exact_event` is over.
  ///   kDeadlineExceeded    the event did not come in time: EVENT_PENDING, or
  ///                        no reason where the server did not get to say so.
  absl::StatusOr<RowSet> Pull(std::span<const int64_t> row_ids,
                              std::span<std::byte> out,
                              const PullOptions& options = {});

  /// The same, without waiting. `row_ids` may go when it returns; `out` must
  /// stay until the pull has ended. Sent before the event it waits for: the ids
  /// travel early. At most two pulls of a trainer are under way on a shard;
  /// more wait their turn.
  PendingPull PullAsync(std::span<const int64_t> row_ids,
                        std::span<std::byte> out,
                        const PullOptions& options = {});

  /// Checks ids, in any order, repeats allowed, and splits them over the
  /// shards, for calls that name these rows, however many. `row_ids` may go
  /// when it returns.
  ///
  /// Errors:
  ///   kOutOfRange         ROW_OUT_OF_TABLE: names the first bad position.
  ///   kResourceExhausted  no memory for them on the GPU.
  absl::StatusOr<RowList> PrepareRows(std::span<const int64_t> row_ids);

  /// As with ids. In memory of the GPU, of rows that a server on the same host
  /// shares, a pull is one kernel.
  absl::StatusOr<RowSet> Pull(const RowList& rows, std::span<std::byte> out,
                              const PullOptions& options = {});
  PendingPull PullAsync(const RowList& rows, std::span<std::byte> out,
                        const PullOptions& options = {});

  /// Copies the rows of an earlier pull to `out` again, the same bits.
  ///
  /// Errors as `Pull`; kFailedPrecondition (EVENT_PAST) when their event is
  /// over.
  absl::Status Repull(const RowSet& rows, std::span<std::byte> out,
                      const CallOptions& options = {});

  /// Contributes one part to `event`: `gradients` is [rows.row_count(), dim] of
  /// the gradient type, in the order of the pull.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_SHAPE, NOT_FINITE.
  ///   kFailedPrecondition  EVENT_AHEAD, EVENT_PAST, CONTRIBUTION_SEALED.
  ///   kAlreadyExists       PART_DIFFERS: the part has other content.
  /// Shards check their rows each for itself: a part that one refused others
  /// may have accepted. `Discard` the event before other gradients take its
  /// place.
  ///   kResourceExhausted   CONTRIBUTION_FULL.
  absl::StatusOr<PushResult> Push(int64_t event, const RowSet& rows,
                                  std::span<const std::byte> gradients,
                                  const PushOptions& options = {});

  /// The same for rows named by ids, in any order, repeats allowed.
  absl::StatusOr<PushResult> Push(int64_t event,
                                  std::span<const int64_t> row_ids,
                                  std::span<const std::byte> gradients,
                                  const PushOptions& options = {});
  absl::StatusOr<PushResult> Push(int64_t event, const RowList& rows,
                                  std::span<const std::byte> gradients,
                                  const PushOptions& options = {});

  /// Declares the contribution to `event` complete, with the parts that were
  /// pushed or came of head calls; none is valid. Rank 0 must also `Commit`.
  ///
  /// Errors:
  ///   kFailedPrecondition  PARTS_MISSING, CONTRIBUTION_SEALED, ...
  ///   Rank 0: that of an earlier commit.
  absl::Status Seal(int64_t event, const CallOptions& options = {});

  /// Drops the parts pushed to `event`, and head calls' weight gradients.
  ///
  /// Errors:
  ///   kFailedPrecondition  CONTRIBUTION_SEALED, by this trainer or its
  ///                        predecessor.
  absl::Status Discard(int64_t event, const CallOptions& options = {});

  /// Rank 0: hands the decision for `event` to the library's committer, which
  /// waits for all seals and commits on every shard. Returns at once; a fault
  /// is the result of the next `Commit`, `Seal` or `WaitForEvent`. Deciding
  /// again the event whose commit failed clears the fault; decisions for later
  /// events are to be given again too.
  ///
  /// Errors:
  ///   kFailedPrecondition  NOT_RANK_0; or not the event `next_commit`.
  ///   kInvalidArgument     BAD_COMMIT: scalars of the other kind of table.
  absl::Status Commit(int64_t event, CommitDecision decision);

  /// `Seal` and `Commit`.
  absl::Status SealAndCommit(int64_t event, CommitDecision decision,
                             const CallOptions& options = {});

  /// Waits until `event` is applied on every shard.
  ///
  /// Errors:
  ///   kDeadlineExceeded  it did not come in time; as `Pull`.
  ///   Rank 0: that of its commit.
  absl::Status WaitForEvent(int64_t event, const CallOptions& options = {});

  /// The library's own.
  const std::shared_ptr<internal::TrainerCore>& core() const { return core_; }

 private:
  std::shared_ptr<internal::TrainerCore> core_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TRAINER_H_
