#include "client/internal/retry.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "kernels/hash.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::client::internal {
namespace {

// Different calls wait differently long; which one how long does not matter.
uint64_t NextSeed() {
  static std::atomic<uint64_t> counter = 0;
  return kernels::Mix64(counter.fetch_add(1) + kernels::kGolden);
}

}  // namespace

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return true;
    case absl::StatusCode::kDeadlineExceeded:
      return wire::ReasonOf(status) == wire::reasons::kEventPending;
    case absl::StatusCode::kResourceExhausted: {
      const std::optional<wire::ErrorDetails> details = wire::DetailsOf(status);
      return details.has_value() && details->retry_delay.has_value();
    }
    case absl::StatusCode::kAborted: {
      const std::string reason = wire::ReasonOf(status);
      return reason == wire::reasons::kBusy ||
             reason == wire::reasons::kSuperseded;
    }
    default:  // Of the canonical codes, no other passes by itself.
      return false;
  }
}

Backoff::Backoff(const RetryOptions& options, uint64_t seed)
    : options_(options), next_(options.initial_backoff), random_(seed) {}

absl::Duration Backoff::Next(const absl::Status& status) {
  random_ = kernels::Mix64(random_ + kernels::kGolden);
  const double unit = static_cast<double>(random_ >> 11) * 0x1p-53;
  absl::Duration wait = next_ * (1.0 - options_.jitter * unit);
  next_ = std::min(next_ * options_.multiplier, options_.max_backoff);
  const std::optional<wire::ErrorDetails> details = wire::DetailsOf(status);
  if (details.has_value() && details->retry_delay.has_value()) {
    wait = std::max(wait, *details->retry_delay);
  }
  return wait;
}

absl::Status RetryUntil(Clock& clock, const RetryOptions& options,
                        const CallContext& context,
                        absl::FunctionRef<absl::Status()> attempt) {
  Cancellation never;
  Cancellation& cancellation =
      context.cancellation == nullptr ? never : *context.cancellation;
  Backoff backoff(options, NextSeed());
  while (true) {
    if (cancellation.cancelled()) return absl::CancelledError("cancelled");
    const absl::Time begin = clock.Now();
    const absl::Status status = attempt();
    if (status.ok() || !IsRetryable(status)) return status;
    const absl::Time now = clock.Now();
    // A wait for an event at the server was the wait.
    const bool waited = status.code() == absl::StatusCode::kDeadlineExceeded &&
                        now - begin >= options.initial_backoff;
    const absl::Time next = waited ? now : now + backoff.Next(status);
    if (next >= context.deadline) return status;
    if (!cancellation.WaitUntil(clock, next)) {
      return absl::CancelledError("cancelled");
    }
  }
}

}  // namespace rowhouse::client::internal
