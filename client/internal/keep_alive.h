#ifndef ROWHOUSE_CLIENT_INTERNAL_KEEP_ALIVE_H_
#define ROWHOUSE_CLIENT_INTERNAL_KEEP_ALIVE_H_

#include <thread>

#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "client/internal/router.h"
#include "client/internal/session.h"

namespace rowhouse::client::internal {

/// Renews a session's lease on every shard from a thread of its own, each third
/// of the lease, until it is destroyed or the session fenced.
class KeepAlive {
 public:
  /// `router` must outlive it.
  KeepAlive(const Router& router, const OpenedSession& session);
  ~KeepAlive();

 private:
  void Run();
  bool Renew();

  const Router& router_;
  const OpenedSession session_;
  Cancellation stop_;
  std::thread thread_;  // Last: it uses the rest.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_KEEP_ALIVE_H_
