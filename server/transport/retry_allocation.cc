#include "server/transport/retry_allocation.h"

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "kernels/mutex.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {

AllocationRetry::AllocationRetry(absl::Duration patience, absl::Duration pause)
    : deadline_(absl::Now() + patience), pause_(pause) {}

bool AllocationRetry::TryAgain(const absl::Status& status) {
  const absl::Time now = absl::Now();
  if (!absl::IsResourceExhausted(status) || now >= deadline_) return false;
  spdlog::warn(
      "{}; clients of a server before this one may have its memory mapped: "
      "trying again for {}",
      std::string(status.message()), absl::FormatDuration(deadline_ - now));
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  const absl::Time until = std::min(now + pause_, deadline_);
  while (absl::Now() < until) never.WaitUntil(mutex, absl::ToChronoTime(until));
  return true;
}

}  // namespace rowhouse::server
