#ifndef ROWHOUSE_SERVER_SERVICE_UNARY_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_UNARY_CALL_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/wire/status.h"
#include "server/service/active_calls.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// One unary call. It ends once, from any thread; gRPC tells it when the caller
/// has gone, and it tells the shard. Deletes itself.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(ActiveCalls& calls, const grpc::CallbackServerContext& context)
      : active_(calls, context) {}

  ActiveCall& active() { return active_; }
  const std::shared_ptr<Call>& call() const { return active_.call(); }

  /// Sends the response, or the error. The call must not be touched after it.
  void End(absl::Status status) {
    Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
  }

  /// A callback that ends the call: on success `fill(T)` writes the response.
  template <typename T, typename FillResponse>
  Done<T> Ending(FillResponse fill) {
    return [this, fill = std::move(fill)](absl::StatusOr<T> result) mutable {
      if (result.ok()) fill(*std::move(result));
      End(result.status());
    };
  }

  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  ActiveCall active_;
};

/// Runs `body(UnaryCall&)`, which either returns an error, and the call ends
/// with it, or OK, having handed the call on to something that ends it.
template <typename Body>
grpc::ServerUnaryReactor* RunUnary(ActiveCalls& calls,
                                   const grpc::CallbackServerContext* context,
                                   Body body) {
  auto* const call = new UnaryCall(calls, *context);
  absl::Status status = call->active().admission();
  if (status.ok()) status = body(*call);
  // It may have ended already, but does not go before gRPC has it back.
  if (!status.ok()) call->End(std::move(status));
  return call;
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_UNARY_CALL_H_
