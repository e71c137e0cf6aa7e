#include "server/service/active_calls.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

bool IsServerFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

}  // namespace

absl::Status DrainingError() {
  return wire::Error(absl::StatusCode::kUnavailable, wire::reasons::kDraining,
                     "the server is draining; repeat the call once it is back");
}

void ActiveCalls::Drain() {
  std::vector<std::shared_ptr<Shard>> shards;
  {
    MutexLock lock(mutex_);
    draining_ = true;
    for (ActiveCall* call : waiting_) {
      call->call_->cancelled = true;
      shards.push_back(call->shard_);
    }
  }
  for (const std::shared_ptr<Shard>& shard : shards) shard->NoteCancelled();
}

bool ActiveCalls::draining() const {
  MutexLock lock(mutex_);
  return draining_;
}

int64_t ActiveCalls::active_count() const {
  MutexLock lock(mutex_);
  return count_;
}

int64_t ActiveCalls::waiting_count() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

int64_t ActiveCalls::WaitUntilIdle(absl::Time deadline) {
  MutexLock lock(mutex_);
  while (count_ > 0 && absl::Now() < deadline) {
    idle_.WaitUntil(mutex_, absl::ToChronoTime(deadline));
  }
  return count_;
}

ActiveCall::ActiveCall(ActiveCalls& calls,
                       const grpc::CallbackServerContext& context)
    : calls_(calls), admitted_([&calls] {
        MutexLock lock(calls.mutex_);
        ++calls.count_;
        return !calls.draining_;
      }()) {
  call_->deadline = absl::FromChrono(context.deadline());
}

ActiveCall::~ActiveCall() {
  MutexLock lock(calls_.mutex_);
  calls_.waiting_.erase(this);
  --calls_.count_;
  if (calls_.count_ == 0) calls_.idle_.SignalAll();
}

absl::Status ActiveCall::admission() const {
  return admitted_ ? absl::OkStatus() : DrainingError();
}

void ActiveCall::BeginWait() {
  MutexLock lock(calls_.mutex_);
  calls_.waiting_.insert(this);
  if (calls_.draining_) call_->cancelled = true;
}

void ActiveCall::EndWait() {
  MutexLock lock(calls_.mutex_);
  calls_.waiting_.erase(this);
}

void ActiveCall::Attach(std::shared_ptr<Shard> shard) {
  MutexLock lock(calls_.mutex_);
  shard_ = std::move(shard);
}

void ActiveCall::Cancel() {
  call_->cancelled = true;
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(calls_.mutex_);
    shard = shard_;
  }
  if (shard != nullptr) shard->NoteCancelled();
}

absl::Status ActiveCall::Outcome(absl::Status status) const {
  if (status.code() == absl::StatusCode::kCancelled && calls_.draining()) {
    return DrainingError();
  }
  if (IsServerFault(status.code())) {
    spdlog::error("{}: {}", shard_ == nullptr ? "server" : shard_->spec().table,
                  status.ToString());
  }
  return status;
}

}  // namespace rowhouse::server
