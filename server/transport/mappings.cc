#include "server/transport/mappings.h"

#include "absl/status/status.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {

absl::Status Mapping::Take() {
  if (!taken.exchange(true)) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kAborted, wire::reasons::kBusy,
                     "another call has the mapping's inbox; repeat the call");
}

}  // namespace rowhouse::server
