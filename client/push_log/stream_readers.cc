#include "client/push_log/stream_readers.h"

#include <utility>

namespace rowhouse::client::push_log {
namespace {

constexpr size_t kAheadMessages = 2;  // Each little over 1 MiB.

}  // namespace

StreamReaders::StreamReaders(
    const internal::ClusterCore& cluster,
    const std::vector<std::unique_ptr<internal::RecordStream>>& streams,
    internal::Cancellation& stop)
    : cluster_(cluster),
      streams_(streams),
      stop_(stop),
      ahead_(streams.size()) {
  for (int32_t shard = 0; shard < std::ssize(streams); ++shard) {
    threads_.emplace_back([this, shard] { Run(shard); });
  }
}

StreamReaders::~StreamReaders() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  stop_.Cancel();
  for (std::thread& thread : threads_) thread.join();
}

void StreamReaders::Run(int32_t shard) {
  while (Add(shard, streams_[shard]->Read())) {
  }
  if (!fault().ok()) stop_.Cancel();
}

bool StreamReaders::Add(int32_t shard, absl::StatusOr<Message> message) {
  MutexLock lock(mutex_);
  changed_.SignalAll();
  if (!message.ok()) {
    if (fault_.ok()) {
      fault_ = internal::AtAddress(message.status(),
                                   cluster_.channel(shard).address());
    }
    return false;
  }
  const bool more = message->has_value();
  ahead_[shard].push_back(*std::move(message));
  while (more && !ending_ && fault_.ok() && !awaits_event_ &&
         ahead_[shard].size() >= kAheadMessages) {
    changed_.Wait(mutex_);
  }
  return more && !ending_ && fault_.ok();
}

absl::StatusOr<StreamReaders::Message> StreamReaders::Next(int32_t shard,
                                                           bool event) {
  MutexLock lock(mutex_);
  std::deque<Message>& ahead = ahead_[shard];
  while (ahead.empty() && fault_.ok()) {
    if (!std::exchange(awaits_event_, event)) changed_.SignalAll();
    changed_.Wait(mutex_);
  }
  awaits_event_ = false;
  if (ahead.empty()) return fault_;
  Message message = std::move(ahead.front());
  if (message.has_value()) ahead.pop_front();  // The end stays.
  changed_.SignalAll();
  return message;
}

absl::Status StreamReaders::fault() const {
  MutexLock lock(mutex_);
  return fault_;
}

}  // namespace rowhouse::client::push_log
