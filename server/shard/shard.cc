#include "server/shard/shard.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/mutex.h"
#include "server/shard/head_landing.h"
#include "server/shard/lane.h"
#include "server/shard/lane_snapshot.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::server {
namespace {

/// The shard's core behind its lane.
class LaneShard final : public Shard {
 public:
  LaneShard(const ShardSpec& spec, const ShardLimits& limits,
            TimerQueue& timers)
      : spec_(spec),
        range_(spec_),
        timers_(timers),
        lane_(std::make_shared<Lane>(limits.lane_capacity)) {}

  ~LaneShard() override {
    lane_->PostInternal([this] {
      if (core_ != nullptr) {
        core_->Close(absl::UnavailableError("the shard has been closed"));
      }
    });
    lane_->Stop();
  }

  absl::Status Start(const ShardLimits& limits, kernels::Backend& backend);

  const ShardSpec& spec() const override { return spec_; }
  absl::StatusOr<std::vector<int64_t>> ResolveRowIds(
      std::span<const int64_t> row_ids) const override;

  void OpenPull(PullRequest request, std::shared_ptr<Call> call,
                Done<std::unique_ptr<Pull>> done) override;
  void Digest(std::optional<int64_t> exact_event, std::shared_ptr<Call> call,
              Done<ShardDigest> done) override;
  void GetEventState(EventWait wait, std::shared_ptr<Call> call,
                     Done<EventState> done) override;
  void GetEventStatistics(int64_t event, std::shared_ptr<Call> call,
                          Done<kernels::GradientStatistics> done) override;
  void GetInfo(std::shared_ptr<Call> call, Done<ShardInfo> done) override;
  void OpenRecording(RecordingRequest request, std::shared_ptr<Call> call,
                     Done<std::shared_ptr<Recording>> done) override;
  void ShareRows(std::shared_ptr<Call> call, Done<SharedRows> done) override;
  void OpenWindow(WindowRequest request, std::shared_ptr<Call> call,
                  Done<ReadWindow> done) override;
  void AwaitEnd(std::shared_ptr<Call> call,
                absl::AnyInvocable<void(absl::Status)> done) override;
  void BeginPart(PartHeader header, std::shared_ptr<Call> call,
                 Done<std::unique_ptr<PartLanding>> done) override;
  void FinishPart(std::unique_ptr<PartLanding> landing,
                  std::optional<int32_t> seal_part_count,
                  std::optional<EventCommit> commit, std::shared_ptr<Call> call,
                  Done<PartReceipt> done) override;
  void Seal(TrainerSession trainer, int64_t event, int32_t part_count,
            std::shared_ptr<Call> call, Done<int64_t> done) override;
  void Discard(TrainerSession trainer, int64_t event,
               std::shared_ptr<Call> call, Done<int32_t> done) override;
  void Commit(TrainerSession trainer, int64_t event, EventCommit commit,
              std::shared_ptr<Call> call, Done<bool> done) override;
  void OpenHead(HeadHeader header, std::shared_ptr<Call> call,
                Done<std::unique_ptr<HeadCall>> done) override;
  void ComputeHeadStatistics(HeadCall& head, std::shared_ptr<Call> call,
                             Done<int64_t> done) override;
  void FinishHead(HeadCall& head, std::shared_ptr<Call> call,
                  Done<PartReceipt> done) override;
  void OpenSession(TrainerSession trainer, int64_t owner,
                   std::shared_ptr<Call> call, Done<int64_t> done) override;
  void KeepAlive(TrainerSession trainer, std::shared_ptr<Call> call,
                 Done<int64_t> done) override;
  void Import(int64_t first_row_id, int64_t row_count, std::string rows,
              std::shared_ptr<Call> call, Done<int64_t> done) override;
  void SetTrainerCount(int32_t trainer_count, int64_t from_event,
                       std::shared_ptr<Call> call,
                       Done<ShardInfo> done) override;
  void Reset(std::shared_ptr<Call> call, Done<ShardInfo> done) override;
  void OpenSnapshot(SnapshotRequest request, std::shared_ptr<Call> call,
                    Done<std::unique_ptr<Snapshot>> done) override;
  void OpenRestoration(std::string name, ShardState state,
                       std::shared_ptr<Call> call,
                       Done<std::unique_ptr<Restoration>> done) override;
  void Close(absl::Status reason) override;
  void NoteCancelled() override;

  // Of pulls.
  void Read(int64_t pull, int64_t row_count, void* out,
            absl::AnyInvocable<void(absl::Status)> done);
  void ClosePull(int64_t pull);

 private:
  // Runs `work(done)` on the lane, unless the call is over by then.
  template <typename T, typename Work>
  Lane::Task Gated(std::shared_ptr<Call> call, Done<T> done, Work work,
                   bool needs_rows = true);
  template <typename T, typename Work>
  void Hand(std::shared_ptr<Call> call, Done<T> done, Work work) {
    lane_->Post(Gated<T>(std::move(call), std::move(done), std::move(work)));
  }
  // For the rest of a call that was admitted before: what has been received is
  // not refused for want of room in the lane.
  template <typename T, typename Work>
  void HandAdmitted(std::shared_ptr<Call> call, Done<T> done, Work work) {
    Lane::Task task =
        Gated<T>(std::move(call), std::move(done), std::move(work));
    lane_->PostInternal(
        [task = std::move(task)]() mutable { task(absl::OkStatus()); });
  }
  // Answers with what `work()` returns, and settles after that.
  template <typename T, typename Work>
  void Answer(std::shared_ptr<Call> call, Done<T> done, Work work) {
    Hand<T>(
        std::move(call), std::move(done),
        [work = std::move(work)](Done<T> answer) mutable { answer(work()); });
  }
  // The same, also while the shard has no rows to serve.
  template <typename T, typename Work>
  void AnswerAlways(std::shared_ptr<Call> call, Done<T> done, Work work) {
    lane_->Post(Gated<T>(
        std::move(call), std::move(done),
        [work = std::move(work)](Done<T> answer) mutable { answer(work()); },
        /*needs_rows=*/false));
  }
  // After each task of the lane: ends what is over, and sees to it that parts
  // whose turn has come are folded, one a task, so that others come in between.
  void Settle();
  absl::Status CheckCall(const Call& call, bool needs_rows) const;
  void CallOnTimer(absl::Time time);
  void OnChunkReturned(const std::weak_ptr<Lane>& lane);

  const ShardSpec spec_;
  const RowRange range_;
  TimerQueue& timers_;
  std::unique_ptr<ShardCore> core_;  // The lane's, once started.
  bool fold_posted_ = false;         // The lane's.
  std::atomic<bool> cancel_noted_ = false;
  std::shared_ptr<Lane> lane_;  // Shared with timers, which may fire late.
};

class LanePull final : public Pull {
 public:
  LanePull(LaneShard& shard, const OpenedPull& opened)
      : shard_(shard), opened_(opened) {}
  ~LanePull() override { shard_.ClosePull(opened_.pull); }

  int64_t event() const override { return opened_.event; }
  int64_t handle() const override { return opened_.handle; }
  int64_t row_count() const override { return opened_.row_count; }
  void Read(int64_t row_count, void* out,
            absl::AnyInvocable<void(absl::Status)> done) override {
    shard_.Read(opened_.pull, row_count, out, std::move(done));
  }

 private:
  LaneShard& shard_;
  const OpenedPull opened_;
};

absl::Status LaneShard::Start(const ShardLimits& limits,
                              kernels::Backend& backend) {
  absl::StatusOr<std::unique_ptr<ShardCore>> core =
      ShardCore::Create(spec_, limits, backend, timers_,
                        [this](absl::Time time) { CallOnTimer(time); });
  if (!core.ok()) return std::move(core).status();
  core_ = *std::move(core);
  // Scratch memory is the thread's that works with it.
  std::promise<absl::Status> reserved;
  lane_->PostInternal([&] {
    reserved.set_value(backend.ReserveScratch(ScratchNeeds(spec_, limits)));
  });
  return reserved.get_future().get();
}

void LaneShard::CallOnTimer(absl::Time time) {
  timers_.CallAt(time, [this, lane = std::weak_ptr<Lane>(lane_)] {
    // A lane that has stopped drops the task: `this` may be gone then.
    const std::shared_ptr<Lane> running = lane.lock();
    if (running != nullptr) {
      running->PostInternal([this] {
        core_->OnTimer();
        Settle();
      });
    }
  });
}

void LaneShard::Settle() {
  core_->Settle();
  if (fold_posted_ || !core_->FoldWaits()) return;
  fold_posted_ = true;
  lane_->PostInternal([this] {
    fold_posted_ = false;
    core_->FoldNext();
    Settle();
  });
}

absl::Status LaneShard::CheckCall(const Call& call, bool needs_rows) const {
  absl::Status usable = needs_rows ? core_->Serving() : core_->Usable();
  if (!usable.ok()) return usable;
  if (call.cancelled) return absl::CancelledError("the caller has gone");
  if (timers_.Now() >= call.deadline) {
    return absl::DeadlineExceededError(
        "the deadline passed in the shard's lane");
  }
  return absl::OkStatus();
}

template <typename T, typename Work>
Lane::Task LaneShard::Gated(std::shared_ptr<Call> call, Done<T> done, Work work,
                            bool needs_rows) {
  return [this, call = std::move(call), done = std::move(done),
          work = std::move(work), needs_rows](absl::Status admitted) mutable {
    if (admitted.ok()) admitted = CheckCall(*call, needs_rows);
    if (!admitted.ok()) return done(std::move(admitted));
    work(std::move(done));
    Settle();
  };
}

absl::StatusOr<std::vector<int64_t>> LaneShard::ResolveRowIds(
    std::span<const int64_t> row_ids) const {
  std::vector<int64_t> slots(row_ids.size());
  absl::Status resolved = range_.Resolve(row_ids, 0, slots);
  if (!resolved.ok()) return resolved;
  return slots;
}

void LaneShard::OpenPull(PullRequest request, std::shared_ptr<Call> call,
                         Done<std::unique_ptr<Pull>> done) {
  Hand<std::unique_ptr<Pull>>(
      call, std::move(done),
      [this, call, request = std::move(request)](
          Done<std::unique_ptr<Pull>> answer) mutable {
        core_->OpenPull(std::move(request), std::move(call),
                        [this, answer = std::move(answer)](
                            absl::StatusOr<OpenedPull> opened) mutable {
                          if (!opened.ok())
                            return answer(std::move(opened).status());
                          answer(std::make_unique<LanePull>(*this, *opened));
                        });
      });
}

void LaneShard::Read(int64_t pull, int64_t row_count, void* out,
                     absl::AnyInvocable<void(absl::Status)> done) {
  lane_->PostInternal(
      [this, pull, row_count, out, done = std::move(done)]() mutable {
        done(core_->ReadPull(pull, row_count, out));
        core_->AfterRead(pull);
        Settle();
      });
}

void LaneShard::ClosePull(int64_t pull) {
  lane_->PostInternal([this, pull] { core_->ClosePull(pull); });
}

void LaneShard::Digest(std::optional<int64_t> exact_event,
                       std::shared_ptr<Call> call, Done<ShardDigest> done) {
  Hand<ShardDigest>(call, std::move(done),
                    [this, call, exact_event](Done<ShardDigest> answer) {
                      core_->Digest(exact_event, call, std::move(answer));
                    });
}

void LaneShard::GetEventState(EventWait wait, std::shared_ptr<Call> call,
                              Done<EventState> done) {
  Hand<EventState>(call, std::move(done), [=, this](Done<EventState> answer) {
    core_->GetEventState(
        wait, call,
        [this,
         answer = std::move(answer)](absl::StatusOr<EventState> state) mutable {
          if (state.ok()) {
            state->load.lane_call_count = lane_->WaitingCount();
            state->load.max_lane_call_count = lane_->capacity();
          }
          answer(std::move(state));
        });
  });
}

void LaneShard::GetEventStatistics(int64_t event, std::shared_ptr<Call> call,
                                   Done<kernels::GradientStatistics> done) {
  Answer<kernels::GradientStatistics>(
      std::move(call), std::move(done),
      [this, event] { return core_->GetEventStatistics(event); });
}

void LaneShard::GetInfo(std::shared_ptr<Call> call, Done<ShardInfo> done) {
  AnswerAlways<ShardInfo>(std::move(call), std::move(done),
                          [this] { return core_->GetInfo(); });
}

void LaneShard::OpenRecording(RecordingRequest request,
                              std::shared_ptr<Call> call,
                              Done<std::shared_ptr<Recording>> done) {
  Answer<std::shared_ptr<Recording>>(
      call, std::move(done),
      [this, call, request = std::move(request)]() mutable {
        return core_->OpenRecording(std::move(request), std::move(call));
      });
}

void LaneShard::ShareRows(std::shared_ptr<Call> call, Done<SharedRows> done) {
  Answer<SharedRows>(std::move(call), std::move(done),
                     [this] { return core_->ShareRows(); });
}

void LaneShard::OpenWindow(WindowRequest request, std::shared_ptr<Call> call,
                           Done<ReadWindow> done) {
  Hand<ReadWindow>(call, std::move(done),
                   [this, call, request](Done<ReadWindow> answer) {
                     core_->OpenWindow(request, call, std::move(answer));
                   });
}

void LaneShard::AwaitEnd(std::shared_ptr<Call> call,
                         absl::AnyInvocable<void(absl::Status)> done) {
  lane_->PostInternal(
      [this, call = std::move(call), done = std::move(done)]() mutable {
        core_->AwaitEnd(std::move(call), std::move(done));
      });
}

void LaneShard::BeginPart(PartHeader header, std::shared_ptr<Call> call,
                          Done<std::unique_ptr<PartLanding>> done) {
  using Begun = absl::StatusOr<std::unique_ptr<PartLanding>>;
  Answer<std::unique_ptr<PartLanding>>(
      std::move(call), std::move(done),
      [this, header = std::move(header)]() mutable -> Begun {
        absl::StatusOr<std::unique_ptr<Landing>> landing =
            core_->BeginPart(std::move(header));
        if (!landing.ok()) return std::move(landing).status();
        const std::shared_ptr<LandingTicket> ticket = (*landing)->plan().ticket;
        (*landing)->set_abandon([this, ticket] {
          lane_->PostInternal([this, ticket] { core_->EndLanding(*ticket); });
        });
        return *std::move(landing);
      });
}

void LaneShard::FinishPart(std::unique_ptr<PartLanding> landing,
                           std::optional<int32_t> seal_part_count,
                           std::optional<EventCommit> commit,
                           std::shared_ptr<Call> call, Done<PartReceipt> done) {
  HandAdmitted<PartReceipt>(
      call, std::move(done),
      [this, landing = std::move(landing), seal_part_count,
       commit = std::move(commit), call](Done<PartReceipt> answer) mutable {
        auto& received = static_cast<Landing&>(*landing);
        const TrainerSession trainer = received.plan().header.trainer;
        const int64_t event = received.plan().header.event;
        absl::StatusOr<FinishedPart> finished =
            core_->FinishPart(received, seal_part_count, std::move(commit));
        core_->EndLanding(*received.plan().ticket);
        received.Release();
        if (!finished.ok()) return answer(std::move(finished).status());
        if (!finished->commit.has_value()) return answer(finished->receipt);
        core_->Commit(trainer, event, *std::move(finished->commit), call,
                      [receipt = finished->receipt, answer = std::move(answer)](
                          const absl::StatusOr<bool>& recorded) mutable {
                        if (!recorded.ok()) return answer(recorded.status());
                        answer(receipt);
                      });
      });
}

void LaneShard::Seal(TrainerSession trainer, int64_t event, int32_t part_count,
                     std::shared_ptr<Call> call, Done<int64_t> done) {
  Answer<int64_t>(std::move(call), std::move(done), [=, this] {
    return core_->Seal(trainer, event, part_count);
  });
}

void LaneShard::Discard(TrainerSession trainer, int64_t event,
                        std::shared_ptr<Call> call, Done<int32_t> done) {
  Answer<int32_t>(std::move(call), std::move(done),
                  [=, this] { return core_->Discard(trainer, event); });
}

void LaneShard::Commit(TrainerSession trainer, int64_t event,
                       EventCommit commit, std::shared_ptr<Call> call,
                       Done<bool> done) {
  Hand<bool>(call, std::move(done),
             [this, trainer, event, call,
              commit = std::move(commit)](Done<bool> answer) mutable {
               core_->Commit(trainer, event, std::move(commit), std::move(call),
                             std::move(answer));
             });
}

void LaneShard::OpenHead(HeadHeader header, std::shared_ptr<Call> call,
                         Done<std::unique_ptr<HeadCall>> done) {
  using Opened = absl::StatusOr<std::unique_ptr<HeadCall>>;
  Answer<std::unique_ptr<HeadCall>>(
      std::move(call), std::move(done), [this, header]() -> Opened {
        absl::StatusOr<std::unique_ptr<HeadLanding>> head =
            core_->OpenHead(header);
        if (!head.ok()) return std::move(head).status();
        (*head)->set_abandon([this, place = (*head)->place()] {
          lane_->PostInternal([this, place] { core_->CloseHead(place); });
        });
        return *std::move(head);
      });
}

void LaneShard::ComputeHeadStatistics(HeadCall& head,
                                      std::shared_ptr<Call> call,
                                      Done<int64_t> done) {
  auto& landing = static_cast<HeadLanding&>(head);
  HandAdmitted<int64_t>(
      call, std::move(done), [this, call, &landing](Done<int64_t> answer) {
        core_->ComputeHeadStatistics(landing, call, std::move(answer));
      });
}

void LaneShard::FinishHead(HeadCall& head, std::shared_ptr<Call> call,
                           Done<PartReceipt> done) {
  auto& landing = static_cast<HeadLanding&>(head);
  HandAdmitted<PartReceipt>(std::move(call), std::move(done),
                            [this, &landing](Done<PartReceipt> answer) {
                              answer(core_->FinishHead(landing));
                            });
}

void LaneShard::OpenSession(TrainerSession trainer, int64_t owner,
                            std::shared_ptr<Call> call, Done<int64_t> done) {
  Answer<int64_t>(std::move(call), std::move(done),
                  [=, this] { return core_->OpenSession(trainer, owner); });
}

void LaneShard::KeepAlive(TrainerSession trainer, std::shared_ptr<Call> call,
                          Done<int64_t> done) {
  Answer<int64_t>(std::move(call), std::move(done),
                  [=, this] { return core_->KeepAlive(trainer); });
}

void LaneShard::Import(int64_t first_row_id, int64_t row_count,
                       std::string rows, std::shared_ptr<Call> call,
                       Done<int64_t> done) {
  Answer<int64_t>(std::move(call), std::move(done),
                  [this, first_row_id, row_count, rows = std::move(rows)] {
                    return core_->Import(first_row_id, row_count, rows);
                  });
}

void LaneShard::SetTrainerCount(int32_t trainer_count, int64_t from_event,
                                std::shared_ptr<Call> call,
                                Done<ShardInfo> done) {
  Answer<ShardInfo>(std::move(call), std::move(done), [=, this] {
    return core_->SetTrainerCount({from_event, trainer_count});
  });
}

void LaneShard::Reset(std::shared_ptr<Call> call, Done<ShardInfo> done) {
  AnswerAlways<ShardInfo>(std::move(call), std::move(done),
                          [this] { return core_->Reset(); });
}

void LaneShard::OpenSnapshot(SnapshotRequest request,
                             std::shared_ptr<Call> call,
                             Done<std::unique_ptr<Snapshot>> done) {
  using Opened = absl::StatusOr<std::unique_ptr<Snapshot>>;
  Answer<std::unique_ptr<Snapshot>>(
      call, std::move(done),
      [this, call, request = std::move(request)]() mutable -> Opened {
        absl::StatusOr<std::shared_ptr<OpenedSnapshot>> opened =
            core_->OpenSnapshot(std::move(request), std::move(call),
                                [this, lane = std::weak_ptr<Lane>(lane_)] {
                                  OnChunkReturned(lane);
                                });
        if (!opened.ok()) return std::move(opened).status();
        return std::make_unique<LaneSnapshot>(*lane_, *core_, *opened,
                                              [this] { Settle(); });
      });
}

void LaneShard::OnChunkReturned(const std::weak_ptr<Lane>& lane) {
  const std::shared_ptr<Lane> running = lane.lock();
  if (running == nullptr) return;
  running->PostInternal([this] {
    core_->OnChunkReturned();
    Settle();
  });
}

void LaneShard::OpenRestoration(std::string name, ShardState state,
                                std::shared_ptr<Call> call,
                                Done<std::unique_ptr<Restoration>> done) {
  using Opened = absl::StatusOr<std::unique_ptr<Restoration>>;
  AnswerAlways<std::unique_ptr<Restoration>>(
      std::move(call), std::move(done),
      [this, name = std::move(name),
       state = std::move(state)]() mutable -> Opened {
        const absl::StatusOr<int64_t> number =
            core_->BeginRestoration(std::move(name), state);
        if (!number.ok()) return number.status();
        return std::make_unique<LaneRestoration>(*lane_, *core_, *number,
                                                 [this] { Settle(); });
      });
}

void LaneShard::Close(absl::Status reason) {
  Mutex mutex;
  CondVar changed;
  bool closed = false;
  lane_->PostInternal([&] {
    core_->Close(reason);
    MutexLock lock(mutex);
    closed = true;
    changed.SignalAll();
  });
  MutexLock lock(mutex);
  while (!closed) changed.Wait(mutex);
}

void LaneShard::NoteCancelled() {
  if (cancel_noted_.exchange(true)) return;
  lane_->PostInternal([this] {
    cancel_noted_ = false;
    core_->EndWaits();
    Settle();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(const ShardSpec& spec,
                                                     const ShardLimits& limits,
                                                     kernels::Backend& backend,
                                                     TimerQueue& timers) {
  auto shard = std::make_unique<LaneShard>(spec, limits, timers);
  absl::Status started = shard->Start(limits, backend);
  if (!started.ok()) return started;
  return shard;
}

}  // namespace rowhouse::server
