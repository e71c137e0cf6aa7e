#include "client/internal/flush_queue.h"

namespace rowhouse::client::internal {
namespace {

// Contributions are accepted for so many events after the last applied one.
constexpr int64_t kOpenEvents = 2;

}  // namespace

void FlushQueue::Push(const DelayedGradient& gradient) {
  MutexLock lock(mutex_);
  queue_.push_back(gradient);
  while (queue_.front().event <= gradient.event - kOpenEvents) {
    queue_.pop_front();
    ++applied_count_;
  }
}

std::optional<DelayedGradient> FlushQueue::Pop() {
  MutexLock lock(mutex_);
  if (applied_count_ > 0) {
    --applied_count_;
    return DelayedGradient{.applied = true};
  }
  if (queue_.empty()) return std::nullopt;
  const DelayedGradient oldest = queue_.front();
  queue_.pop_front();
  return oldest;
}

void FlushQueue::PutBack(const DelayedGradient& gradient) {
  MutexLock lock(mutex_);
  queue_.push_front(gradient);
}

void FlushQueue::Discard(int64_t event) {
  MutexLock lock(mutex_);
  std::erase_if(queue_, [event](const DelayedGradient& gradient) {
    return gradient.event == event;
  });
}

}  // namespace rowhouse::client::internal
