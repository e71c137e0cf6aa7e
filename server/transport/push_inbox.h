#ifndef ROWHOUSE_SERVER_TRANSPORT_PUSH_INBOX_H_
#define ROWHOUSE_SERVER_TRANSPORT_PUSH_INBOX_H_

#include <memory>

#include "absl/status/status.h"
#include "rowhouse/v1/transport_service.pb.h"
#include "server/admin_thread.h"
#include "server/service/unary_call.h"
#include "server/table_registry.h"
#include "server/transport/mappings.h"

namespace rowhouse::server {

/// Begins one PushInbox call: checks the header, has the lane admit the part,
/// and lands it on `thread`, which ends the call.
///
/// Errors: what is wrong with the request; the call has not been handed on
/// then.
absl::Status PushInbox(const TableRegistry& tables, AdminThread& thread,
                       std::shared_ptr<Mapping> mapping,
                       const v1::PushInboxRequest& request,
                       v1::PushInboxResponse& response, UnaryCall& call);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_PUSH_INBOX_H_
