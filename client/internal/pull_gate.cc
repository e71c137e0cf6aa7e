#include "client/internal/pull_gate.h"

namespace rowhouse::client::internal {

absl::Status PullGate::Enter(int32_t shard, Clock& clock,
                             const CallContext& context) {
  Cancellation never;
  bool cancelled = false;  // Guarded by `mutex_`.
  Cancellation::Callback callback(
      context.cancellation == nullptr ? never : *context.cancellation, [&] {
        MutexLock lock(mutex_);
        cancelled = true;
        changed_.SignalAll();
      });
  MutexLock lock(mutex_);
  while (open_[shard] >= kPlaces) {
    if (cancelled) return absl::CancelledError("cancelled");
    if (clock.Now() >= context.deadline) {
      return absl::DeadlineExceededError(
          "two pulls of this trainer are under way, wanted a place for a "
          "third");
    }
    clock.WaitUntil(changed_, mutex_, context.deadline);
  }
  ++open_[shard];
  return absl::OkStatus();
}

void PullGate::Leave(int32_t shard) {
  MutexLock lock(mutex_);
  --open_[shard];
  changed_.SignalAll();
}

}  // namespace rowhouse::client::internal
