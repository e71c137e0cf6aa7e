#ifndef ROWHOUSE_SERVER_IN_FLIGHT_H_
#define ROWHOUSE_SERVER_IN_FLIGHT_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// Bounds what rows on their way to clients take of memory: in all, and for
/// each client, so that one that reads slowly holds no more than its share.
///
/// Who finds no room waits; of those whose clients have room the longest
/// waiting goes first. Room for one request is always given where nothing else
/// is in flight.
///
/// Thread-safe.
class InFlight {
 public:
  struct Limits {
    int64_t total_bytes = int64_t{512} << 20;
    int64_t client_bytes = int64_t{8} << 20;
  };

  /// Room that was given; destroying it gives it back, and others their turn.
  /// May outlive its `InFlight`.
  using Room = std::shared_ptr<void>;
  /// Called once, on the thread that asks or one that gives room back; quick.
  using Done = absl::AnyInvocable<void(Room)>;

  explicit InFlight(const Limits& limits);

  /// Gives `client` room for `size_bytes`, at once or when there is some.
  /// `owner`: who may withdraw; it asks for no more meanwhile.
  void Take(const std::string& client, int64_t size_bytes, const void* owner,
            Done done);

  /// Whether `owner` was waiting; it is no more, and its `done` is not called.
  [[nodiscard]] bool Withdraw(const void* owner);

  /// In flight now, and requests that wait.
  int64_t used_bytes() const;
  int64_t waiting_count() const;

 private:
  class State;

  const std::shared_ptr<State> state_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_IN_FLIGHT_H_
