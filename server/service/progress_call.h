#ifndef ROWHOUSE_SERVER_SERVICE_PROGRESS_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_PROGRESS_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "kernels/mutex.h"
#include "proto/wire/status.h"
#include "server/checkpoint_work.h"
#include "server/service/active_calls.h"
#include "server/service/checkpoint_convert.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::server {

/// What a `ProgressCall` is told of its work, from any thread.
struct WorkCallbacks {
  absl::AnyInvocable<void()> started;            ///< At most once.
  absl::AnyInvocable<void(absl::Status)> ended;  ///< Once, last.
};

/// One call whose stream tells how far its work is: a message once that has
/// started, one every 200 ms, and one at its end. A caller that goes cancels
/// the work. Deletes itself.
template <typename Response>
class ProgressCall final
    : public grpc::ServerWriteReactor<Response>,
      public std::enable_shared_from_this<ProgressCall<Response>> {
 public:
  using Make =
      absl::AnyInvocable<absl::StatusOr<std::unique_ptr<CheckpointWork>>(
          WorkCallbacks)>;
  /// Adds the result to the last message of work that ended well.
  using FillLast = absl::AnyInvocable<void(Response&)>;

  /// `calls` and `timers` must outlive it.
  static grpc::ServerWriteReactor<Response>* Run(
      ActiveCalls& calls, const grpc::CallbackServerContext& context,
      TimerQueue& timers, Make make, FillLast fill_last = nullptr) {
    auto call = std::make_shared<ProgressCall>(calls, context, timers,
                                               std::move(fill_last));
    call->self_ = call;
    call->Start(std::move(make));
    return call.get();
  }

  ProgressCall(ActiveCalls& calls, const grpc::CallbackServerContext& context,
               TimerQueue& timers, FillLast fill_last)
      : active_(calls, context),
        timers_(timers),
        fill_last_(std::move(fill_last)) {}

  void OnWriteDone(bool ok) override {
    if (!ok) work_->Cancel();
    {
      MutexLock lock(mutex_);
      writing_ = false;
    }
    Advance();
  }
  void OnCancel() override {
    active_.Cancel();
    MutexLock lock(mutex_);
    if (work_ != nullptr) work_->Cancel();
  }
  void OnDone() override { self_.reset(); }

 private:
  static constexpr absl::Duration kInterval = absl::Milliseconds(200);

  void Start(Make make) {
    absl::Status status = active_.admission();
    if (status.ok()) {
      absl::StatusOr<std::unique_ptr<CheckpointWork>> work =
          make({[this] { OnStarted(); },
                [this](absl::Status ended) { OnEnded(std::move(ended)); }});
      status = work.status();
      MutexLock lock(mutex_);
      if (work.ok()) work_ = *std::move(work);
      if (work_ != nullptr && active_.call()->cancelled) work_->Cancel();
    }
    if (!status.ok()) {
      this->Finish(wire::ToGrpc(active_.Outcome(status)));
    } else {
      AdvanceAt(timers_.Now());  // It may have started, or ended, before.
    }
  }

  void OnStarted() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      started_ = true;
    }
    AdvanceAt(timers_.Now());
  }

  // The work's thread must not end the call: that waits for the thread.
  void OnEnded(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      ended_ = std::move(status);
    }
    AdvanceAt(timers_.Now());
  }

  // From any thread: not by `self_`, which may be going on another one.
  void AdvanceAt(absl::Time time) {
    timers_.CallAt(time, [weak = this->weak_from_this()] {
      const std::shared_ptr<ProgressCall> call = weak.lock();
      if (call == nullptr) return;
      {
        MutexLock lock(call->mutex_);
        call->due_ = true;
      }
      call->Advance();
    });
  }

  // Writes what is due, or ends.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<absl::Status> end;
    {
      MutexLock lock(mutex_);
      if (writing_ || finished_ || work_ == nullptr) return;
      const bool last = ended_.has_value() && ended_->ok() && !last_written_;
      if (ended_.has_value() && !last) {
        finished_ = true;
        end = *ended_;
      } else {
        if (!last && !(started_ && due_)) return;
        due_ = false;
        last_written_ = last;
        writing_ = true;
        Fill(work_->progress(), *message_.mutable_progress());
        if (last && fill_last_) fill_last_(message_);
      }
    }
    if (end.has_value()) {
      this->Finish(wire::ToGrpc(active_.Outcome(*std::move(end))));
      return;
    }
    AdvanceAt(timers_.Now() + kInterval);
    this->StartWrite(&message_);
  }

  ActiveCall active_;
  TimerQueue& timers_;
  FillLast fill_last_;
  std::shared_ptr<ProgressCall> self_;  // Until gRPC has done with it.
  Response message_;

  Mutex mutex_;
  std::unique_ptr<CheckpointWork> work_;  // Set by `Start`, while locked.
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool due_ ABSL_GUARDED_BY(mutex_) = false;  // A message is.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_written_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PROGRESS_CALL_H_
