#include "client/internal/checkpoint_streams.h"

#include <algorithm>
#include <utility>

namespace rowhouse::client::internal {

CheckpointStreams::CheckpointStreams(ClusterCore& cluster)
    : cluster_(cluster), cancellation_(cluster.stop()) {}

CheckpointStreams::~CheckpointStreams() { Cancel(); }

void CheckpointStreams::Start(int32_t server, Call call) {
  Stream* stream = nullptr;
  {
    MutexLock lock(mutex_);
    stream = &streams_.emplace_back();
    ++running_count_;
  }
  cluster_.pool().Schedule(
      [this, server, stream, call = std::move(call)]() mutable {
        Run(server, std::move(call), *stream);
      });
}

void CheckpointStreams::Run(int32_t server, Call call, Stream& stream) {
  ShardChannel& channel = cluster_.channel(server);
  const absl::Status status =
      AtAddress(call(channel.checkpoints(),
                     [&](const CheckpointProgress& progress) {
                       MutexLock lock(mutex_);
                       stream.progress = progress;
                       stream.begun = true;
                       ++change_count_;
                       changed_.SignalAll();
                     },
                     {absl::InfiniteFuture(), &cancellation_}),
                channel.address());
  if (!status.ok()) Fail(status);
  MutexLock lock(mutex_);
  stream.ended = true;
  --running_count_;
  ++change_count_;
  changed_.SignalAll();
}

void CheckpointStreams::Fail(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    // What calls say after they were cancelled is no news.
    if (fault_.ok()) fault_ = status;
  }
  cancellation_.Cancel();
}

bool CheckpointStreams::WaitUntil(absl::Time deadline) {
  if (cluster_.clock().Now() >= deadline) return false;
  cluster_.clock().WaitUntil(changed_, mutex_, deadline);
  return true;
}

absl::Status CheckpointStreams::AwaitEnd() {
  MutexLock lock(mutex_);
  while (running_count_ > 0) changed_.Wait(mutex_);
  return fault_;
}

bool CheckpointStreams::AllBegun() const {
  return std::all_of(
      streams_.begin(), streams_.end(),
      [](const Stream& stream) { return stream.begun || stream.ended; });
}

CheckpointProgress CheckpointStreams::Sum() const {
  CheckpointProgress sum;
  bool all_known = true;
  for (const Stream& stream : streams_) {
    sum.done_bytes += stream.progress.done_bytes;
    sum.total_bytes += stream.progress.total_bytes;
    sum.before_image_row_count += stream.progress.before_image_row_count;
    sum.event_wait += stream.progress.event_wait;
    all_known &= stream.ended || stream.progress.total_bytes > 0;
  }
  if (!all_known) sum.total_bytes = 0;
  return sum;
}

absl::Status CheckpointStreams::AwaitBegun(absl::Time deadline) {
  bool in_time = true;
  {
    MutexLock lock(mutex_);
    while (in_time && fault_.ok() && !AllBegun()) in_time = WaitUntil(deadline);
    if (in_time && fault_.ok()) return absl::OkStatus();
  }
  if (!in_time) Fail(absl::DeadlineExceededError("not begun in time"));
  return AwaitEnd();
}

absl::Status CheckpointStreams::Await(const CheckpointWatcher& watcher,
                                      absl::Time deadline) {
  int64_t told = -1;
  while (true) {
    bool in_time = true;
    bool ended = false;
    CheckpointProgress progress;
    {
      MutexLock lock(mutex_);
      while (in_time && fault_.ok() && running_count_ > 0 &&
             (watcher == nullptr || change_count_ == told)) {
        in_time = WaitUntil(deadline);
      }
      if (!fault_.ok()) break;
      told = change_count_;
      ended = running_count_ == 0;
      progress = Sum();
    }
    const bool go_on = watcher == nullptr || watcher(progress);
    if (ended) break;
    if (!in_time) Fail(absl::DeadlineExceededError("not done in time"));
    if (!go_on) Fail(absl::CancelledError("cancelled"));
  }
  return AwaitEnd();
}

void CheckpointStreams::Cancel() {
  cancellation_.Cancel();
  AwaitEnd().IgnoreError();
}

CheckpointProgress CheckpointStreams::progress() const {
  MutexLock lock(mutex_);
  return Sum();
}

bool CheckpointStreams::any_begun() const {
  MutexLock lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return stream.begun; });
}

}  // namespace rowhouse::client::internal
