#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_CALL_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_CALL_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "grpcpp/client_context.h"
#include "proto/wire/status.h"

namespace rowhouse::client::internal {

/// The context of one call: its deadline, and its end by cancellation.
class GrpcCall {
 public:
  explicit GrpcCall(const CallContext& context) {
    context_.set_deadline(absl::ToChronoTime(context.deadline));
    if (context.cancellation != nullptr) {
      callback_.emplace(*context.cancellation,
                        [this] { context_.TryCancel(); });
    }
  }

  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
  std::optional<Cancellation::Callback> callback_;
};

/// Makes a call that has one answer.
template <typename Stub, typename Request, typename Response>
absl::Status Unary(Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                const Request&, Response*),
                   const CallContext& context, const Request& request,
                   Response& response) {
  GrpcCall call(context);
  return wire::FromGrpc((stub.*method)(call.get(), request, &response));
}

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_CALL_H_
