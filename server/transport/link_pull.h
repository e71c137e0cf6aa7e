#ifndef ROWHOUSE_SERVER_TRANSPORT_LINK_PULL_H_
#define ROWHOUSE_SERVER_TRANSPORT_LINK_PULL_H_

#include <memory>

#include "absl/status/status.h"
#include "rowhouse/v1/transport_service.pb.h"
#include "server/service/unary_call.h"
#include "server/table_registry.h"
#include "server/transport/link.h"

namespace rowhouse::server {

/// Begins one PullLink call: opens the pull, and on the link's thread ends the
/// call and sends the rows. They are gathered on the lane, piece by piece, each
/// while others travel; the lane waits for no piece.
///
/// Errors: what is wrong with the request; the call has not been handed on
/// then.
absl::Status PullLink(const TableRegistry& tables, std::shared_ptr<Link> link,
                      const v1::PullLinkRequest& request,
                      v1::PullLinkResponse& response, UnaryCall& call);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_LINK_PULL_H_
