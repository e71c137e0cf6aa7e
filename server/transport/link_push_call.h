#ifndef ROWHOUSE_SERVER_TRANSPORT_LINK_PUSH_CALL_H_
#define ROWHOUSE_SERVER_TRANSPORT_LINK_PUSH_CALL_H_

#include <future>
#include <memory>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rowhouse/v1/transport_service.pb.h"
#include "server/service/active_calls.h"
#include "server/service/push_header.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"
#include "server/transport/link.h"

namespace rowhouse::server {

/// One PushLink call: has the lane admit the part, tells the client its turn,
/// and on the link's thread lands the rows, piece by piece, each while others
/// travel. Nothing of them is looked at before they are where the client cannot
/// write. Deletes itself.
class LinkPushCall final
    : public grpc::ServerWriteReactor<v1::PushLinkResponse> {
 public:
  LinkPushCall(ActiveCalls& calls, const grpc::CallbackServerContext& context)
      : active_(calls, context) {}

  /// Checks the request and begins the part, or ends the call. `request` stays
  /// until `OnDone`.
  void Start(const TableRegistry& tables, const Links& links,
             const v1::PushLinkRequest& request);

  void OnWriteDone(bool ok) override { written_.set_value(ok); }
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Begin(const TableRegistry& tables, const Links& links);
  void OnBegun(absl::StatusOr<std::unique_ptr<PartLanding>> landing);
  void Land();
  absl::Status Receive();
  void Answer(const PartReceipt& receipt);
  void End(absl::Status status);

  ActiveCall active_;
  const v1::PushLinkRequest* request_ = nullptr;
  std::shared_ptr<Link> link_;
  PushHeader header_;
  std::unique_ptr<PartLanding> landing_;
  v1::PushLinkResponse response_;
  std::promise<bool> written_;  // The first answer.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_LINK_PUSH_CALL_H_
