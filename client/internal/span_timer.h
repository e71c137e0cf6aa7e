#ifndef ROWHOUSE_CLIENT_INTERNAL_SPAN_TIMER_H_
#define ROWHOUSE_CLIENT_INTERNAL_SPAN_TIMER_H_

#include <cstdint>

#include "absl/time/clock.h"
#include "rowhouse/observer.h"

namespace rowhouse::client::internal {

/// A span that begins now, if there is an observer; `observer` must outlive it.
class SpanTimer {
 public:
  SpanTimer(const Observer& observer, Stage stage, int64_t event,
            int32_t shard = -1)
      : observer_(observer) {
    if (observer_ == nullptr) return;
    span_ = {.stage = stage,
             .shard = shard,
             .event = event,
             .begin = absl::Now(),
             .end = {},
             .row_count = 0,
             .path = Path::kGrpc};
  }

  /// Ends it now, and tells of it.
  void End(int64_t row_count = 0, Path path = Path::kGrpc) {
    if (observer_ == nullptr) return;
    span_.end = absl::Now();
    span_.row_count = row_count;
    span_.path = path;
    observer_(span_);
  }

 private:
  const Observer& observer_;
  Span span_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_SPAN_TIMER_H_
