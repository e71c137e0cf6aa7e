#include "client/internal/pull_gate.h"

#include "absl/strings/str_cat.h"

namespace rowhouse::client::internal {

absl::Status PullGate::Enter(int32_t shard, Clock& clock,
                             const CallContext& context) {
  const WaitCancellation cancellation(context, mutex_, changed_);
  MutexLock lock(mutex_);
  while (open_[shard] >= places_) {
    if (cancellation.cancelled()) return absl::CancelledError("cancelled");
    if (clock.Now() >= context.deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(places_, " ", what_,
                       " of this trainer under way, wanted a place for "
                       "another"));
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
