#ifndef ROWHOUSE_TESTS_SERVER_SERVICE_RAW_CALL_H_
#define ROWHOUSE_TESTS_SERVER_SERVICE_RAW_CALL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"

namespace rowhouse::testing {

/// Calls `method` with one message of these bytes and returns the bytes of the
/// first answer: for services whose generated code is not packaged.
absl::StatusOr<std::string> CallRaw(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
    const std::string& request);

/// A channel to `address` on a connection of its own.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SERVICE_RAW_CALL_H_
