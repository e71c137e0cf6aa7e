#include "server/shard/lane.h"

#include <cstdint>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/mutex.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

Lane::Lane(int32_t capacity)
    : capacity_(capacity), thread_([this] { Run(); }) {}

Lane::~Lane() { Stop(); }

void Lane::Post(Task task) {
  absl::Status admitted = Admit(task);
  // Outside the lock: a refused task may post again.
  if (!admitted.ok()) task(std::move(admitted));
}

absl::Status Lane::Admit(Task& task) {
  MutexLock lock(mutex_);
  if (stopping_) return absl::UnavailableError("the shard has been closed");
  if (counted_ >= capacity_) {
    return wire::Error(
        absl::StatusCode::kResourceExhausted, wire::reasons::kLaneFull,
        absl::StrCat(counted_, " calls wait in the shard's lane; at most ",
                     capacity_, " may (lane_capacity)"),
        {{"limit", "lane_capacity"}, {"value", absl::StrCat(capacity_)}},
        kRetryDelay);
  }
  ++counted_;
  entries_.push_back({std::move(task), true});
  posted_.SignalOne();
  return absl::OkStatus();
}

void Lane::PostInternal(absl::AnyInvocable<void()> task) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  entries_.push_back(
      {[task = std::move(task)](const absl::Status&) mutable { task(); },
       false});
  posted_.SignalOne();
}

int32_t Lane::WaitingCount() const {
  MutexLock lock(mutex_);
  return counted_;
}

void Lane::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    posted_.SignalOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Lane::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (entries_.empty() && !stopping_) posted_.Wait(mutex_);
      if (entries_.empty()) return;
      task = std::move(entries_.front().task);
      if (entries_.front().counted) --counted_;
      entries_.pop_front();
    }
    task(absl::OkStatus());
  }
}

}  // namespace rowhouse::server
