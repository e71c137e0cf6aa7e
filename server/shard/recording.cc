#include "server/shard/recording.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

absl::Status BehindError(int64_t event, int64_t size_bytes, int64_t held_bytes,
                         int64_t buffer_bytes) {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kRecorderBehind,
      absl::StrCat("event ", event, " has ", size_bytes,
                   " bytes of parts and does not fit into the recording's "
                   "buffer: ",
                   held_bytes, " of buffer_bytes, ", buffer_bytes,
                   ", are held; record with a larger buffer"),
      {{"event", absl::StrCat(event)},
       {"size_bytes", absl::StrCat(size_bytes)},
       {"held_bytes", absl::StrCat(held_bytes)},
       {"limit", "buffer_bytes"},
       {"value", absl::StrCat(buffer_bytes)}});
}

}  // namespace

void Recording::Next(Done<bool> done) {
  if (cancelled()) End(absl::CancelledError("the caller has gone"));
  Held freed;  // Outside the lock.
  absl::StatusOr<bool> result = true;
  {
    MutexLock lock(mutex_);
    if (std::exchange(at_front_, false)) {
      freed = std::move(held_.front());
      held_.pop_front();
      held_bytes_ -= freed.size_bytes;
    }
    if (!ended_.ok()) {
      result = DeepCopy(ended_);
    } else if (!held_.empty()) {
      at_front_ = true;
    } else if (complete_) {
      result = false;
    } else {
      waiting_ = std::move(done);
      return;
    }
  }
  done(std::move(result));
}

absl::StatusOr<Recording::Event> Recording::Current() const {
  MutexLock lock(mutex_);
  if (!ended_.ok()) return DeepCopy(ended_);
  return held_.front().event;
}

void Recording::Add(Event event, int64_t size_bytes) {
  absl::Status behind;
  Done<bool> waiting;
  {
    MutexLock lock(mutex_);
    if (!ended_.ok() || complete_) return;
    if (size_bytes > request_.buffer_bytes - held_bytes_) {
      behind = BehindError(event->event, size_bytes, held_bytes_,
                           request_.buffer_bytes);
    } else {
      complete_ = request_.last_event == event->event;
      held_.push_back({std::move(event), size_bytes});
      held_bytes_ += size_bytes;
      waiting = std::exchange(waiting_, nullptr);
      if (waiting != nullptr) at_front_ = true;
    }
  }
  if (!behind.ok()) return End(behind);
  if (waiting != nullptr) waiting(true);
}

void Recording::End(const absl::Status& reason) {
  std::deque<Held> freed;
  std::shared_ptr<void> reservation;
  Done<bool> waiting;
  {
    MutexLock lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = DeepCopy(reason);
    freed.swap(held_);
    at_front_ = false;
    held_bytes_ = 0;
    waiting = std::exchange(waiting_, nullptr);
    reservation = std::move(reservation_);
  }
  freed.clear();  // Before the reservation.
  reservation = nullptr;
  if (waiting != nullptr) waiting(DeepCopy(reason));
}

int64_t Recording::held_bytes() const {
  MutexLock lock(mutex_);
  return held_bytes_;
}

bool Recording::finished() const {
  MutexLock lock(mutex_);
  return complete_ || !ended_.ok();
}

}  // namespace rowhouse::server
