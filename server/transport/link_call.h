#ifndef ROWHOUSE_SERVER_TRANSPORT_LINK_CALL_H_
#define ROWHOUSE_SERVER_TRANSPORT_LINK_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/transport_service.pb.h"
#include "server/admin_thread.h"
#include "server/service/active_calls.h"
#include "server/service/call_turn.h"
#include "server/table_registry.h"
#include "server/transport/link.h"

namespace rowhouse::server {

/// One OpenLink call: makes a link, and ends it when the client has gone, a
/// transfer fails, or the server ends it. It is not among the calls that a
/// drain waits for. Deletes itself.
class LinkCall final : public grpc::ServerBidiReactor<v1::OpenLinkRequest,
                                                      v1::OpenLinkResponse> {
 public:
  struct Server {
    const ActiveCalls& calls;
    TableRegistry& tables;
    Links& links;
    AdminThread& stops;  ///< Where links that ended are waited for.
    const kernels::BackendOptions& backend;
    const LinkOptions& options;
  };

  /// What `server` names must outlive it.
  explicit LinkCall(const Server& server) : server_(server) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(absl::CancelledError("the client has gone")); }
  void OnDone() override;

 private:
  enum class Step : uint8_t { kAsked, kAccepted, kJoining };

  absl::Status Accept();
  absl::Status Join();
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Link> link() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Server server_;
  const std::shared_ptr<CallTurn> turn_ = std::make_shared<CallTurn>();
  v1::OpenLinkRequest request_;
  v1::OpenLinkResponse response_;
  Step step_ = Step::kAsked;
  int64_t number_ = 0;  // Of the link, once there is one.

  mutable Mutex mutex_;
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(mutex_);  // Null until then.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_LINK_CALL_H_
