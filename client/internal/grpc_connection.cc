#include "client/internal/grpc_connection.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace rowhouse::client::internal {
namespace {

// The wait itself cannot be cancelled.
constexpr absl::Duration kCancellationDelay = absl::Milliseconds(20);

}  // namespace

void GrpcConnection::AwaitReconnect(const CallContext& context) {
  const absl::Time end =
      std::min(context.deadline, absl::Now() + kConnectAttempt);
  while (channel->GetState(/*try_to_connect=*/false) ==
         GRPC_CHANNEL_TRANSIENT_FAILURE) {
    const absl::Time now = absl::Now();
    if (now >= end) return;
    if (context.cancellation != nullptr && context.cancellation->cancelled()) {
      return;
    }
    channel->WaitForStateChange(
        GRPC_CHANNEL_TRANSIENT_FAILURE,
        absl::ToChronoTime(std::min(end, now + kCancellationDelay)));
  }
}

}  // namespace rowhouse::client::internal
