#ifndef ROWHOUSE_SERVER_SHARD_SHARD_H_
#define ROWHOUSE_SERVER_SHARD_SHARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/host_pieces.h"
#include "proto/wire/placement.h"
#include "server/shard/head_call.h"
#include "server/shard/trainer_session.h"

namespace rowhouse::server {

/// Imports of one table that may be under way; each holds its rows, at most
/// `max_pull_bytes`, until it is complete.
inline constexpr int32_t kMostImports = 2;

/// What rank 0 says an event does.
struct EventCommit {
  std::vector<int64_t> sessions;  ///< Of each rank's sealed contribution.
  bool skip = false;
  kernels::RowAdamScalars scalars;  ///< Unused when `skip`, or with `adamw`.
  /// Of a dense table.
  std::optional<kernels::AdamWScalars> adamw = std::nullopt;

  friend bool operator==(const EventCommit&, const EventCommit&) = default;
};

enum class GradientReduction : uint8_t { kSum = 1, kMean = 2 };

/// What a dense table has beyond a sparse one.
struct DenseSpec {
  kernels::DType main_grad_dtype = kernels::DType::kFp32;
  bool has_master = false;
  bool has_bias = false;
  /// Tokens of the head calls of one trainer in one event.
  int64_t max_head_token_count = 0;
};

/// A table, and which shard of it this is.
struct ShardSpec {
  std::string table;  ///< For messages: `tables/{table}`.
  wire::Placement placement;
  int32_t shard_index = 0;
  int64_t dim = 0;
  kernels::DType row_dtype = kernels::DType::kBf16;
  kernels::DType gradient_dtype = kernels::DType::kBf16;
  kernels::Initializer initializer;
  kernels::NonFinitePolicy policy = kernels::NonFinitePolicy::kReject;
  GradientReduction reduction = GradientReduction::kSum;
  int32_t trainer_count = 1;
  int64_t max_contribution_row_count = 0;
  int32_t max_part_count = 1;
  int64_t max_pull_bytes = int64_t{64} << 20;
  std::optional<DenseSpec> dense = std::nullopt;  ///< Not set: a sparse table.
};

/// Limits of a shard that come from the server's configuration.
struct ShardLimits {
  int32_t lane_capacity = 4096;
  int32_t max_parked_read_count = 1024;
  int32_t max_anonymous_pull_count = 8;
  /// Head calls without a trainer, all of them evaluations.
  int32_t max_anonymous_head_call_count = 2;
  /// Of the head's GEMMs: they fix the order of its sums.
  kernels::HeadBlocks head_blocks;
  /// What a table keeps at most of the logits of its head calls.
  int64_t logits_budget_bytes = int64_t{64} << 20;
  /// Weights lie in memory that other processes of the host can map, and each
  /// shard keeps an epoch word beside them.
  bool one_sided = false;
  absl::Duration max_wait = absl::Seconds(30);
  absl::Duration lease = absl::Seconds(30);
};

/// The caller's side of a waiting call: its deadline, and whether it has gone.
struct Call {
  absl::Time deadline = absl::InfiniteFuture();
  std::atomic<bool> cancelled = false;
};

/// Called once, on the lane's thread or the caller's; must be quick.
template <typename T>
using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

struct PullRequest {
  std::vector<int64_t> slots;     ///< From `Shard::ResolveRowIds`.
  std::optional<int64_t> handle;  ///< Instead of `slots`; needs `trainer`.
  std::optional<TrainerSession> trainer;
  std::optional<int64_t> min_event;
  std::optional<int64_t> exact_event;
  bool return_handle = false;
  bool training = false;
};

/// An open pull: rows as of one event. Owned by the call that opened it;
/// destroying it frees its place. Must not outlive its shard.
class Pull {
 public:
  virtual ~Pull() = default;
  virtual int64_t event() const = 0;
  virtual int64_t handle() const = 0;  ///< 0 without one.
  virtual int64_t row_count() const = 0;

  /// Copies the next `row_count` rows to `out`, memory of the host or of the
  /// backend that stays valid until `done`. One read at a time.
  ///
  /// REQUIRES: so many rows are left.
  virtual void Read(int64_t row_count, void* out,
                    absl::AnyInvocable<void(absl::Status)> done) = 0;
};

/// Asks for the events that are applied from now on.
struct RecordingRequest {
  int64_t buffer_bytes = 0;  ///< Of parts that may be held for it.
  std::optional<int64_t> last_event = std::nullopt;  ///< It ends after it.
  bool digest = false;  ///< At the start, and after `last_event`.
  /// What holds the buffer's bytes reserved; let go when the recording ends.
  std::shared_ptr<void> reservation = nullptr;
};

class Recording;

// server/shard/snapshot.h
struct ShardState;
struct SnapshotRequest;
class Snapshot;

// server/shard/restoration.h
class Restoration;

struct PartHeader {
  TrainerSession trainer;
  int64_t event = 0;
  int32_t part = 0;
  int64_t row_count = 0;
  std::vector<int64_t> handles;  ///< Names the rows; empty: by row ids.
};

/// A part that is being received. Owned by the receiving call; destroying it
/// before `FinishPart` gives its place back and leaves no trace.
///
/// Thread-compatible; works on the caller's thread, off the lane.
class PartLanding {
 public:
  virtual ~PartLanding() = default;

  /// Lands the next rows of the part, which may be cut anywhere. `row_ids` are
  /// global, one a row, or empty when the header named handles.
  ///
  /// Errors:
  ///   kInvalidArgument  BAD_OFFSET, BAD_SHAPE, NOT_FINITE, ...
  ///   kOutOfRange       ROW_OUT_OF_TABLE, ROW_OF_OTHER_SHARD; names the first.
  virtual absl::Status Append(int64_t first_row,
                              std::span<const int64_t> row_ids,
                              const kernels::HostPieces& rows) = 0;

  /// `on_revoked` is called on the lane, at most once, when the part can be
  /// staged no more: with ABORTED (SUPERSEDED, FENCED), or with what ended its
  /// contribution or its shard. Destroy the landing then, to free its memory:
  /// at once, or after the `Append` under way.
  ///
  /// REQUIRES: called in `done` of `BeginPart`, which is on the lane.
  virtual void set_on_revoked(
      absl::AnyInvocable<void(absl::Status)> on_revoked) = 0;
};

struct PartReceipt {
  int64_t event = 0;      ///< Applied when the part was first accepted.
  int64_t row_count = 0;  ///< Rows of the part.
  bool duplicate = false;
};

struct ContributionState {
  int32_t trainer_rank = 0;
  int64_t session = 0;
  int32_t part_count = 0;
  int64_t row_count = 0;
  bool sealed = false;
  int64_t token_count = 0;        ///< Of head parts.
  int32_t folded_part_count = 0;  ///< Parts that are in main_grad.
};

struct OpenEventState {
  int64_t event = 0;
  int32_t trainer_count = 0;
  bool all_sealed = false;
  std::vector<ContributionState> contributions;  ///< By rank.
};

struct AppliedEventState {
  int64_t event = 0;
  EventCommit commit;
  kernels::EventReport report;
};

struct SessionState {
  TrainerSession trainer;
  absl::Duration idle;
  bool lease_expired = false;
};

/// What waits and what is under way.
struct ShardLoad {
  int32_t lane_call_count = 0;  ///< Calls waiting for their turn.
  int32_t max_lane_call_count = 0;
  int32_t parked_call_count = 0;  ///< Calls waiting for an event.
  int32_t max_parked_call_count = 0;
  int32_t open_pull_count = 0;     ///< Waiting ones too.
  int32_t landing_part_count = 0;  ///< Repeats too.
  int32_t open_head_call_count = 0;
  int64_t staged_bytes = 0;     ///< Of the parts of open events.
  int32_t recording_count = 0;  ///< That take events; of the fullest buffer:
  int64_t recording_held_bytes = 0;
  int64_t recording_buffer_bytes = 0;

  friend bool operator==(const ShardLoad&, const ShardLoad&) = default;
};

struct EventState {
  int64_t event = 0;                              ///< The last applied.
  std::vector<OpenEventState> open_events;        ///< Ascending, at most two.
  std::vector<AppliedEventState> applied_events;  ///< Ascending, at most two.
  std::vector<SessionState> sessions;             ///< By rank.
  ShardLoad load;
};

struct TrainerCountChange {
  int64_t from_event = 0;
  int32_t trainer_count = 0;
};

struct ShardDigest {
  int64_t event = 0;
  uint64_t row_sum = 0;
  uint64_t history_sum = 0;
};

struct ShardInfo {
  int64_t event = 0;
  std::vector<TrainerCountChange> trainer_counts;
};

/// A shard's memory as other processes map it.
struct SharedRows {
  kernels::SharedMemory weights;  ///< [rows of the shard, dim], row-major.
  /// One int64, the epoch: changed before any row is, and whenever a window is
  /// to be opened anew.
  kernels::SharedMemory epoch;
};

/// As long as the epoch word holds `epoch`, the rows are those of `event`.
struct ReadWindow {
  int64_t event = 0;
  int64_t epoch = 0;
};

/// What a window is asked for; see `PullRequest`.
struct WindowRequest {
  std::optional<TrainerSession> trainer = std::nullopt;
  std::optional<int64_t> min_event = std::nullopt;
  std::optional<int64_t> exact_event = std::nullopt;
};

class TimerQueue;

/// What a `GetEventState` waits for; each that is set.
struct EventWait {
  std::optional<int64_t> sealed_event;   ///< All ranks have sealed it.
  std::optional<int64_t> applied_event;  ///< It is applied.
  /// Of event `folded_event`, `folded_part_count` parts of `folded_rank` are in
  /// main_grad, or it is applied.
  std::optional<int64_t> folded_event;
  int32_t folded_rank = 0;
  int32_t folded_part_count = 0;

  friend bool operator==(const EventWait&, const EventWait&) = default;
};

/// One server's part of a table: its rows, its events and the lane that
/// orders all work on them.
///
/// Every method but `ResolveRowIds` and the constants hands its work to the
/// lane and returns at once; `done` is called when it is through. The codes
/// and reasons of faults are those of `rowhouse/v1/*.proto`; a refused call
/// changes nothing. A call whose deadline passes in the queue ends
/// DEADLINE_EXCEEDED, one that was cancelled CANCELLED, without effect.
///
/// Knows neither gRPC nor protobuf. Thread-safe.
class Shard {
 public:
  /// Bytes that the shard reserves: weights and the optimizer's state, two
  /// events of contributions, handles, and the staging of pulls, imports and
  /// head calls.
  static int64_t ReservedBytes(const ShardSpec& spec,
                               const ShardLimits& limits);

  /// The largest calls that the lane asks of the backend.
  static kernels::ScratchNeeds ScratchNeeds(const ShardSpec& spec,
                                            const ShardLimits& limits);

  /// Bytes of the parts of two events, the most there can be: the buffer of a
  /// recording that never falls an event behind.
  static int64_t RecordingBytes(const ShardSpec& spec);

  /// Makes the shard at event 0 with its initial rows, and reserves the lane's
  /// scratch memory. `backend` and `timers` must outlive it.
  ///
  /// Errors: the backend's, for want of memory.
  ///
  /// REQUIRES: `spec` has been validated.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(
      const ShardSpec& spec, const ShardLimits& limits,
      kernels::Backend& backend, TimerQueue& timers);

  virtual ~Shard() = default;

  virtual const ShardSpec& spec() const = 0;

  /// Slots of global row ids.
  ///
  /// Errors:
  ///   kOutOfRange  ROW_OUT_OF_TABLE, ROW_OF_OTHER_SHARD; names the first bad
  ///                position.
  virtual absl::StatusOr<std::vector<int64_t>> ResolveRowIds(
      std::span<const int64_t> row_ids) const = 0;

  // Reads.
  virtual void OpenPull(PullRequest request, std::shared_ptr<Call> call,
                        Done<std::unique_ptr<Pull>> done) = 0;
  virtual void Digest(std::optional<int64_t> exact_event,
                      std::shared_ptr<Call> call, Done<ShardDigest> done) = 0;
  virtual void GetEventState(EventWait wait, std::shared_ptr<Call> call,
                             Done<EventState> done) = 0;
  virtual void GetEventStatistics(int64_t event, std::shared_ptr<Call> call,
                                  Done<kernels::GradientStatistics> done) = 0;
  virtual void GetInfo(std::shared_ptr<Call> call, Done<ShardInfo> done) = 0;
  /// Records the events applied from now on, until the caller has gone, an
  /// import, a reset, or the shard's end.
  ///
  /// Errors:
  ///   kFailedPrecondition  EVENT_PAST: `last_event` is applied.
  ///   kResourceExhausted   RECORDINGS_OPEN, with a retry delay.
  virtual void OpenRecording(RecordingRequest request,
                             std::shared_ptr<Call> call,
                             Done<std::shared_ptr<Recording>> done) = 0;

  // One-sided reads.
  /// Errors:
  ///   kFailedPrecondition  NOT_OFFERED: the limits say so, or it has no rows.
  virtual void ShareRows(std::shared_ptr<Call> call, Done<SharedRows> done) = 0;
  /// Waits for the event as a pull does.
  virtual void OpenWindow(WindowRequest request, std::shared_ptr<Call> call,
                          Done<ReadWindow> done) = 0;
  /// Calls `done` when the shard has been closed or the caller has gone, with
  /// the reason: its rows are not to be read any more.
  virtual void AwaitEnd(std::shared_ptr<Call> call,
                        absl::AnyInvocable<void(absl::Status)> done) = 0;

  // Contributions.
  virtual void BeginPart(PartHeader header, std::shared_ptr<Call> call,
                         Done<std::unique_ptr<PartLanding>> done) = 0;
  /// Stages the landed part, and seals and commits with it when asked to: all
  /// or, when any of these is refused, nothing.
  virtual void FinishPart(std::unique_ptr<PartLanding> landing,
                          std::optional<int32_t> seal_part_count,
                          std::optional<EventCommit> commit,
                          std::shared_ptr<Call> call,
                          Done<PartReceipt> done) = 0;
  /// `done` gets the last applied event.
  virtual void Seal(TrainerSession trainer, int64_t event, int32_t part_count,
                    std::shared_ptr<Call> call, Done<int64_t> done) = 0;
  /// `done` gets the count of parts dropped.
  virtual void Discard(TrainerSession trainer, int64_t event,
                       std::shared_ptr<Call> call, Done<int32_t> done) = 0;
  /// `done` gets whether the event had been committed before; it is called when
  /// the commit is recorded, before the event is applied.
  virtual void Commit(TrainerSession trainer, int64_t event, EventCommit commit,
                      std::shared_ptr<Call> call, Done<bool> done) = 0;

  // Head calls, on dense tables. One phase at a time; `head` is of this shard
  // and stays until `done`. The codes and reasons are those of `LmHeadService`.
  virtual void OpenHead(HeadHeader header, std::shared_ptr<Call> call,
                        Done<std::unique_ptr<HeadCall>> done) = 0;
  /// Forms the statistics of the landed tokens on the weights as of the event
  /// before the call's, for which it waits. `done` gets that event.
  virtual void ComputeHeadStatistics(HeadCall& head, std::shared_ptr<Call> call,
                                     Done<int64_t> done) = 0;
  /// Forms the hidden gradient from the landed merged statistics, and stages
  /// the weight gradient of a training call as a part.
  virtual void FinishHead(HeadCall& head, std::shared_ptr<Call> call,
                          Done<PartReceipt> done) = 0;

  // Sessions. `done` gets the last applied event.
  virtual void OpenSession(TrainerSession trainer, int64_t owner,
                           std::shared_ptr<Call> call, Done<int64_t> done) = 0;
  virtual void KeepAlive(TrainerSession trainer, std::shared_ptr<Call> call,
                         Done<int64_t> done) = 0;

  // Administration.
  /// Writes `rows` ([row_count, dim] of the row type) from `first_row_id` on.
  virtual void Import(int64_t first_row_id, int64_t row_count, std::string rows,
                      std::shared_ptr<Call> call, Done<int64_t> done) = 0;
  virtual void SetTrainerCount(int32_t trainer_count, int64_t from_event,
                               std::shared_ptr<Call> call,
                               Done<ShardInfo> done) = 0;
  virtual void Reset(std::shared_ptr<Call> call, Done<ShardInfo> done) = 0;
  /// Arms a snapshot of the rows as of an event, or cuts it at once where that
  /// is the last applied. `call` is the snapshot's as long as it lives.
  ///
  /// Errors:
  ///   kFailedPrecondition  EVENT_PAST; NO_BASE: the rows did not come to be
  ///                        from those of the base.
  ///   kResourceExhausted   CHECKPOINTS_OPEN: there is one.
  virtual void OpenSnapshot(SnapshotRequest request, std::shared_ptr<Call> call,
                            Done<std::unique_ptr<Snapshot>> done) = 0;
  /// Begins to overwrite the shard with `state` and rows, which `name` stands
  /// for (`SnapshotRequest::base`): open contributions are dropped, sessions
  /// closed, and nothing is served until that is finished.
  ///
  /// Errors:
  ///   kDataLoss  the state is none of this table; says why.
  virtual void OpenRestoration(std::string name, ShardState state,
                               std::shared_ptr<Call> call,
                               Done<std::unique_ptr<Restoration>> done) = 0;

  /// Ends every waiting call with `reason` and refuses all later ones with it:
  /// before a delete or the server's end. Returns when the lane is empty.
  virtual void Close(absl::Status reason) = 0;

  /// Wakes the lane to look at cancelled waiting calls. Cheap, never blocks.
  virtual void NoteCancelled() = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SHARD_H_
