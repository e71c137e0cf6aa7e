#include "server/in_flight.h"

#include <utility>
#include <vector>

namespace rowhouse::server {

class InFlight::State : public std::enable_shared_from_this<State> {
 public:
  struct Request {
    std::string client;
    int64_t size_bytes = 0;
    const void* owner = nullptr;
    Done done;
  };

  explicit State(const Limits& limits) : limits_(limits) {}

  void Take(Request request) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!Fits(request)) {
        waiting_.push_back(std::move(request));
        return;
      }
      Add(request);
    }
    Give(std::move(request));
  }

  bool Withdraw(const void* owner) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return std::erase_if(waiting_, [&](const Request& request) {
             return request.owner == owner;
           }) > 0;
  }

  int64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return used_bytes_;
  }

  int64_t waiting_count() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(waiting_.size());
  }

 private:
  // A request that is larger than a limit waits until it is alone.
  bool Fits(const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto used = clients_.find(request.client);
    const int64_t of_client = used == clients_.end() ? 0 : used->second;
    const auto fits = [&](int64_t taken, int64_t limit) {
      return taken == 0 || request.size_bytes <= limit - taken;
    };
    return fits(of_client, limits_.client_bytes) &&
           fits(used_bytes_, limits_.total_bytes);
  }

  void Add(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    clients_[request.client] += request.size_bytes;
    used_bytes_ += request.size_bytes;
  }

  void Give(Request request) {
    Room room(nullptr, [state = shared_from_this(), client = request.client,
                        size_bytes = request.size_bytes](void*) {
      state->Return(client, size_bytes);
    });
    request.done(std::move(room));
  }

  void Return(const std::string& client, int64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::list<Request> next;
    {
      MutexLock lock(mutex_);
      used_bytes_ -= size_bytes;
      const auto used = clients_.find(client);
      used->second -= size_bytes;
      if (used->second == 0) clients_.erase(used);
      for (auto it = waiting_.begin(); it != waiting_.end();) {
        const auto request = it++;
        if (!Fits(*request)) continue;
        Add(*request);
        next.splice(next.end(), waiting_, request);
      }
    }
    for (Request& request : next) Give(std::move(request));
  }

  const Limits limits_;
  mutable Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> clients_ ABSL_GUARDED_BY(mutex_);
  std::list<Request> waiting_ ABSL_GUARDED_BY(mutex_);  // Longest first.
};

InFlight::InFlight(const Limits& limits)
    : state_(std::make_shared<State>(limits)) {}

void InFlight::Take(const std::string& client, int64_t size_bytes,
                    const void* owner, Done done) {
  state_->Take({client, size_bytes, owner, std::move(done)});
}

bool InFlight::Withdraw(const void* owner) { return state_->Withdraw(owner); }

int64_t InFlight::used_bytes() const { return state_->used_bytes(); }

int64_t InFlight::waiting_count() const { return state_->waiting_count(); }

}  // namespace rowhouse::server
