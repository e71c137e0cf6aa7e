#ifndef ROWHOUSE_PROTO_WIRE_STATUS_H_
#define ROWHOUSE_PROTO_WIRE_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace rowhouse::wire {

/// The same code, message and details (`wire/error.h`), with the details as
/// `google.rpc.Status` in `grpc-status-details-bin`: an ErrorInfo of domain
/// `rowhouse`, then a RetryInfo where there is a retry delay.
grpc::Status ToGrpc(const absl::Status& status);

/// The inverse. Details of other domains, or that do not parse, are dropped;
/// code and message are kept.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_STATUS_H_
