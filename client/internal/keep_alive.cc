#include "client/internal/keep_alive.h"

namespace rowhouse::client::internal {

KeepAlive::KeepAlive(const Router& router, const OpenedSession& session)
    : router_(router),
      session_(session),
      stop_(router.cluster().stop()),
      thread_([this] { Run(); }) {}

KeepAlive::~KeepAlive() {
  stop_.Cancel();
  thread_.join();
}

void KeepAlive::Run() {
  Clock& clock = router_.cluster().clock();
  do {
    if (!stop_.WaitUntil(clock, clock.Now() + session_.lease / 3)) return;
  } while (Renew());
}

// Returns whether to go on. A server that is away is asked again next time.
bool KeepAlive::Renew() {
  ClusterCore& cluster = router_.cluster();
  const CallContext context = cluster.Context(session_.lease / 3, stop_);
  const absl::Status status =
      cluster.pool().FanOut(router_.shard_count(), [&](int32_t shard) {
        const absl::Status renewed =
            cluster.channel(shard)
                .KeepAlive(router_.table().name, session_.trainer, context)
                .status();
        return absl::IsAborted(renewed) ? renewed : absl::OkStatus();
      });
  return status.ok();
}

}  // namespace rowhouse::client::internal
