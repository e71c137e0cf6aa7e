#ifndef ROWHOUSE_SERVER_TRANSPORT_NUMBERED_H_
#define ROWHOUSE_SERVER_TRANSPORT_NUMBERED_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/mutex.h"
#include "proto/wire/error.h"

namespace rowhouse::server {

/// What a server made for its clients, by numbers that they name it by. What
/// looks one up keeps it.
///
/// Thread-safe.
template <typename T>
class Numbered {
 public:
  /// `what` one is called, and the reason where it is not there; literals.
  Numbered(std::string_view what, std::string_view gone)
      : what_(what), gone_(gone) {}

  /// Returns the number: random, for a client must not take another's by
  /// mistake.
  int64_t Add(std::shared_ptr<T> made) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::random_device random;
    MutexLock lock(mutex_);
    int64_t number = 0;
    while (number == 0 || made_.contains(number)) {
      number = static_cast<int64_t>((uint64_t{random()} << 32) | random());
    }
    made_[number] = std::move(made);
    return number;
  }

  void Remove(int64_t number) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<T> removed;  // Freed with no lock held.
    MutexLock lock(mutex_);
    const auto found = made_.find(number);
    if (found == made_.end()) return;
    removed = std::move(found->second);
    made_.erase(found);
  }

  /// Errors:
  ///   kFailedPrecondition  it is not there.
  absl::StatusOr<std::shared_ptr<T>> Find(int64_t number) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    const auto found = made_.find(number);
    if (found != made_.end()) return found->second;
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, gone_,
        absl::StrCat("this server has no ", std::string(what_), " ", number),
        {{what_, absl::StrCat(number)}});
  }

  std::vector<std::shared_ptr<T>> All() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [number, made] : made_) all.push_back(made);
    return all;
  }

 private:
  const std::string_view what_;
  const std::string_view gone_;
  mutable Mutex mutex_;
  std::map<int64_t, std::shared_ptr<T>> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_NUMBERED_H_
