#ifndef ROWHOUSE_SERVER_SHARD_SHARD_CORE_H_
#define ROWHOUSE_SERVER_SHARD_SHARD_CORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
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
#include "server/shard/beta2_history.h"
#include "server/shard/class_weights.h"
#include "server/shard/dense_store.h"
#include "server/shard/events.h"
#include "server/shard/handles.h"
#include "server/shard/head_calls.h"
#include "server/shard/head_landing.h"
#include "server/shard/landing.h"
#include "server/shard/landings.h"
#include "server/shard/ledger.h"
#include "server/shard/opened_snapshot.h"
#include "server/shard/parked.h"
#include "server/shard/pulls.h"
#include "server/shard/recordings.h"
#include "server/shard/row_epoch.h"
#include "server/shard/row_range.h"
#include "server/shard/sessions.h"
#include "server/shard/shard.h"
#include "server/shard/table_store.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::server {

/// A pull that has been opened.
struct OpenedPull {
  int64_t pull = 0;
  int64_t event = 0;
  int64_t handle = 0;
  int64_t row_count = 0;
};

/// What `ShardCore::FinishPart` did, and the commit that is still to be
/// recorded, if one came with the part.
struct FinishedPart {
  PartReceipt receipt;
  std::optional<EventCommit> commit;
};

/// What a shard does, without its lane: the methods are those of `Shard`, run
/// one at a time. After each call the owner calls `Settle`.
///
/// Thread-compatible: only the lane's thread calls it.
class ShardCore {
 public:
  /// Asks for a call of `OnTimer`, on the lane, at a time or a little after.
  using WakeAt = absl::AnyInvocable<void(absl::Time)>;

  /// `spec`, `backend` and `timers` must outlive it.
  static absl::StatusOr<std::unique_ptr<ShardCore>> Create(
      const ShardSpec& spec, const ShardLimits& limits,
      kernels::Backend& backend, const TimerQueue& timers, WakeAt wake_at);

  /// Why no call is served any more, or OK: the shard was closed, or its
  /// backend failed in an event.
  absl::Status Usable() const;

  /// The same, or why the shard has no rows to serve.
  absl::Status Serving() const;

  /// Applies the event that was committed, and ends the waits that are over.
  void Settle();
  void OnTimer();
  /// Whether a part waits to be folded; `FoldNext` folds it. A dense table's
  /// owner calls these until nothing waits, other work in between.
  bool FoldWaits();
  void FoldNext();
  /// Ends what has been cancelled.
  void EndWaits();
  void Close(const absl::Status& reason);

  // Reads (shard_core_reads.cc).
  void OpenPull(PullRequest request, std::shared_ptr<Call> call,
                Done<OpenedPull> done);
  absl::Status ReadPull(int64_t pull, int64_t row_count, void* out);
  /// After the rows have been handed on.
  void AfterRead(int64_t pull);
  void ClosePull(int64_t pull) { pulls_.Remove(pull); }
  void Digest(std::optional<int64_t> exact_event, std::shared_ptr<Call> call,
              Done<ShardDigest> done);
  void GetEventState(const EventWait& wait, std::shared_ptr<Call> call,
                     Done<EventState> done);
  absl::StatusOr<kernels::GradientStatistics> GetEventStatistics(int64_t event);
  ShardInfo GetInfo() const;

  // One-sided reads (shard_core_windows.cc).
  absl::StatusOr<SharedRows> ShareRows() const;
  void OpenWindow(const WindowRequest& request, std::shared_ptr<Call> call,
                  Done<ReadWindow> done);
  void AwaitEnd(std::shared_ptr<Call> call,
                absl::AnyInvocable<void(absl::Status)> done);

  // Recordings (shard_core_recordings.cc).
  absl::StatusOr<std::shared_ptr<Recording>> OpenRecording(
      RecordingRequest request, std::shared_ptr<Call> call);

  // Contributions (shard_core_parts.cc).
  absl::StatusOr<std::unique_ptr<Landing>> BeginPart(PartHeader header);
  void EndLanding(const LandingTicket& ticket) { landings_.End(ticket); }
  absl::StatusOr<FinishedPart> FinishPart(Landing& landing,
                                          std::optional<int32_t> part_count,
                                          std::optional<EventCommit> commit);

  // Head calls (shard_core_head.cc).
  absl::StatusOr<std::unique_ptr<HeadLanding>> OpenHead(
      const HeadHeader& header);
  void CloseHead(int64_t place) { head_calls_.Remove(place); }
  /// `head` stays until `done`.
  void ComputeHeadStatistics(HeadLanding& head, std::shared_ptr<Call> call,
                             Done<int64_t> done);
  absl::StatusOr<PartReceipt> FinishHead(HeadLanding& head);

  // Events and sessions (shard_core_events.cc).
  absl::StatusOr<int64_t> Seal(const TrainerSession& trainer, int64_t event,
                               int32_t part_count);
  absl::StatusOr<int32_t> Discard(const TrainerSession& trainer, int64_t event);
  void Commit(const TrainerSession& trainer, int64_t event, EventCommit commit,
              std::shared_ptr<Call> call, Done<bool> done);
  absl::StatusOr<int64_t> OpenSession(const TrainerSession& trainer,
                                      int64_t owner);
  absl::StatusOr<int64_t> KeepAlive(const TrainerSession& trainer);

  // Administration (shard_core_admin.cc).
  absl::StatusOr<int64_t> Import(int64_t first_row_id, int64_t row_count,
                                 std::string_view rows);
  absl::StatusOr<ShardInfo> SetTrainerCount(const TrainerCountChange& change);
  absl::StatusOr<ShardInfo> Reset();

  // Snapshots (shard_core_snapshots.cc).
  absl::StatusOr<std::shared_ptr<OpenedSnapshot>> OpenSnapshot(
      SnapshotRequest request, std::shared_ptr<Call> call,
      SnapshotChunks::OnReturn on_return);
  void AwaitCut(OpenedSnapshot& snapshot,
                absl::AnyInvocable<void(absl::Status)> done);
  void NextPiece(OpenedSnapshot& snapshot,
                 Done<std::unique_ptr<SnapshotPiece>> done);
  void OnChunkReturned();
  void NoteDurable(const OpenedSnapshot& snapshot);
  void CloseSnapshot(const OpenedSnapshot& snapshot);

  // Restorations (shard_core_restore.cc). One has a number, which a later one
  // takes from it.
  absl::StatusOr<int64_t> BeginRestoration(std::string name,
                                           const ShardState& state);
  absl::Status WriteRestored(
      int64_t restoration, int64_t first_slot, int64_t row_count,
      std::span<const std::span<const std::byte>> columns);
  absl::Status FinishRestoration(int64_t restoration);
  void AbandonRestoration(int64_t restoration);

 private:
  // What FinishPart does with a part.
  struct Verdict {
    PartReceipt receipt;
    bool stage = false;
  };

  // One that is under way.
  struct RestorationState {
    int64_t number = 0;  // 0: none is.
    std::string name;
    int64_t event = 0;
    int64_t row_count = 0;  // That have been written.
  };

  ShardCore(const ShardSpec& spec, const ShardLimits& limits,
            kernels::Backend& backend, const TimerQueue& timers, WakeAt wake_at,
            Beta2History history);

  // Calls `parked.resume` now or when its wait is over.
  void WaitFor(ParkedCall parked);
  std::optional<absl::Status> Judge(const ParkedCall& parked,
                                    absl::Time now) const;
  bool IsFolded(const ParkedCall& parked) const;
  void ArmTimer();
  absl::Time WaitLimit(const Call& call) const;
  // That of a read for its event; without `resume`.
  ParkedCall ReadWait(std::optional<int64_t> min_event,
                      std::optional<int64_t> exact_event,
                      const std::optional<TrainerSession>& trainer,
                      std::shared_ptr<Call> call) const;

  absl::StatusOr<SharedSlots> SlotsOf(PullRequest& request) const;
  absl::Status CheckPullSize(int64_t row_count) const;
  absl::Status CheckReadEvent(std::optional<int64_t> min_event,
                              std::optional<int64_t> exact_event) const;
  OpenedPull StartPull(int64_t pull, bool return_handle);
  std::vector<OpenEventState> DescribeOpen() const;
  ShardLoad DescribeLoad() const;  // Without the lane's part.

  absl::StatusOr<LandingPlan> PlanLanding(PartHeader header);
  absl::Status CheckRoom(const PartHeader& header) const;
  absl::Status ResolveHandles(LandingPlan& plan) const;
  absl::StatusOr<Verdict> JudgePart(const Landing& landing) const;
  void StagePart(Landing& landing, const PartReceipt& receipt);

  absl::Status CheckHeadHeader(const HeadHeader& header) const;
  absl::StatusOr<bool> PlanHead(const HeadHeader& header) const;
  absl::Status CheckTokens(const HeadHeader& header) const;
  absl::Status CheckHeadEvent(int64_t event) const;
  absl::StatusOr<std::optional<PartReceipt>> JudgeHead(
      const HeadLanding& head) const;

  // Ends all read windows before anything that the lane's thread writes next.
  absl::Status BeginWrite();
  // Ends them before it returns.
  absl::Status CloseWindows();

  void DropFolds();
  absl::Status CheckCommitter(const TrainerSession& trainer) const;
  void SealNow(const TrainerSession& trainer, int64_t event);
  void CommitUntil(const TrainerSession& trainer, int64_t event,
                   EventCommit commit, std::shared_ptr<Call> call,
                   absl::Time until, Done<bool> done);
  void ApplyCommitted();
  absl::Status RunEvent(const EventCommit& commit,
                        kernels::EventReport& report);
  void Break(const absl::Status& fault);
  absl::Status CheckRecording(const RecordingRequest& request) const;
  absl::StatusOr<ShardDigest> DigestNow();
  void Record(const EventCommit& commit, Contributions contributions);
  absl::Status RewrittenError(std::string_view what) const;
  // Ends all that belongs to the rows' life so far, for `reason`.
  void ForgetLife(const absl::Status& reason);

  absl::Status CheckSnapshot(const SnapshotRequest& request) const;
  void CutIfDue();
  absl::Status Cut(OpenedSnapshot& snapshot);
  void ServePiece();
  void EndSnapshot(const absl::Status& reason);
  bool SnapshotNeedsRows() const;
  absl::StatusOr<bool> PutAsideNextEvent();
  // Whether the snapshot has all that the next event would change.
  bool MakeRoom();
  void NoteRoom(OpenedSnapshot& snapshot);
  // Of commits: it needs no more rows.
  void EndRoomWaits(OpenedSnapshot& snapshot);
  // Records a commit that has been checked.
  void CommitWhenRoom(const TrainerSession& trainer, int64_t event,
                      EventCommit commit, std::shared_ptr<Call> call,
                      absl::Time until, Done<bool> done);

  absl::Status CheckRestoration(int64_t restoration) const;
  absl::Status CheckLastEvents(int64_t first_slot,
                               std::span<const std::byte> states) const;

  absl::Status LandImport(int64_t first_row_id, int64_t row_count,
                          std::string_view rows, kernels::Buffer& landed);

  const ShardSpec& spec_;
  const ShardLimits limits_;
  kernels::Backend& backend_;
  const TimerQueue& timers_;
  WakeAt wake_at_;
  const RowRange range_;

  const std::unique_ptr<TableStore> store_;
  DenseStore* const dense_;  // The same, of a dense table; else null.
  Beta2History history_;
  Sessions sessions_;
  Events events_;
  Ledger ledger_;
  Landings landings_;
  HeadCalls head_calls_;
  ClassWeightSets class_weights_;
  Handles handles_;
  Pulls pulls_;
  Parked parked_;
  Recordings recordings_;
  std::unique_ptr<RowEpoch> epoch_;  // Null unless the path is offered.

  std::shared_ptr<OpenedSnapshot> snapshot_;  // Null: there is none.
  std::map<std::string, int64_t> bases_;      // Events, by name.
  // Of snapshots; one that needs no more rows counts too.
  int64_t chunk_returns_ = 0;
  RestorationState restoration_;
  int64_t last_restoration_ = 0;
  absl::Status not_restored_;

  std::optional<EventCommit> committed_;  // Recorded, not yet applied.
  bool waits_may_end_ = false;            // Something they wait for changed.
  absl::Time timer_ = absl::InfiniteFuture();  // The earliest that was set.
  absl::Status closed_;
  absl::Status fault_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SHARD_CORE_H_
