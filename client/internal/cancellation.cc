#include "client/internal/cancellation.h"

#include <memory>
#include <utility>

namespace rowhouse::client::internal {

Cancellation::Cancellation(Cancellation& parent)
    : on_parent_(std::make_unique<Callback>(parent, [this] { Cancel(); })) {}

Cancellation::~Cancellation() { on_parent_.reset(); }

void Cancellation::Cancel() {
  MutexLock lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  // Under the lock, so that a callback's owner cannot leave meanwhile.
  for (auto& [id, callback] : callbacks_) callback();
  callbacks_.clear();
  changed_.SignalAll();
}

bool Cancellation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

bool Cancellation::WaitUntil(Clock& clock, absl::Time time) {
  MutexLock lock(mutex_);
  while (!cancelled_ && clock.Now() < time) {
    clock.WaitUntil(changed_, mutex_, time);
  }
  return !cancelled_;
}

Cancellation::Callback::Callback(Cancellation& cancellation,
                                 absl::AnyInvocable<void()> callback)
    : cancellation_(cancellation) {
  MutexLock lock(cancellation_.mutex_);
  if (cancellation_.cancelled_) {
    callback();
    return;
  }
  id_ = cancellation_.next_id_++;
  cancellation_.callbacks_.emplace(id_, std::move(callback));
}

Cancellation::Callback::~Callback() {
  MutexLock lock(cancellation_.mutex_);
  cancellation_.callbacks_.erase(id_);
}

WaitCancellation::WaitCancellation(const CallContext& context, Mutex& mutex,
                                   CondVar& changed)
    : callback_(
          context.cancellation == nullptr ? never_ : *context.cancellation,
          [this, &mutex, &changed] {
            MutexLock lock(mutex);
            cancelled_ = true;
            changed.SignalAll();
          }) {}

}  // namespace rowhouse::client::internal
