#ifndef ROWHOUSE_SERVER_STAGING_H_
#define ROWHOUSE_SERVER_STAGING_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/block_pool.h"
#include "server/in_flight.h"

namespace rowhouse::server {

/// Host memory in which pulled rows wait for the wire: blocks of
/// `kMaxPayloadBytes`, as many at once as `InFlight` allows. They are made when
/// first needed, and kept.
///
/// Thread-safe.
class Staging {
 public:
  using Block = wire::BlockPool::Block;
  /// Called once, on the thread that asks or one that gives a block back;
  /// quick.
  using Done = absl::AnyInvocable<void(absl::StatusOr<Block>)>;

  /// `backend` must outlive it, and makes the memory.
  Staging(kernels::Backend& backend, const InFlight::Limits& limits);

  /// Gives `client` a block, at once or when it may have one. `owner`: as
  /// `InFlight::Take`.
  ///
  /// Errors, given to `done`: the backend's, for want of memory.
  void Take(const std::string& client, const void* owner, Done done);

  /// As `InFlight::Withdraw`.
  [[nodiscard]] bool Withdraw(const void* owner) {
    return in_flight_.Withdraw(owner);
  }

  const InFlight& in_flight() const { return in_flight_; }
  const wire::BlockPool& blocks() const { return blocks_; }

 private:
  InFlight in_flight_;
  wire::BlockPool blocks_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_STAGING_H_
