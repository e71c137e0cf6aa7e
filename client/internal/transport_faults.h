#ifndef ROWHOUSE_CLIENT_INTERNAL_TRANSPORT_FAULTS_H_
#define ROWHOUSE_CLIENT_INTERNAL_TRANSPORT_FAULTS_H_

#include "absl/status/status.h"

namespace rowhouse::client::internal {

/// Whether a path that ended with `status` will end so the next time too.
inline bool IsRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

/// Whether the server may go on with a call that has ended here.
inline bool MayGoOn(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_TRANSPORT_FAULTS_H_
