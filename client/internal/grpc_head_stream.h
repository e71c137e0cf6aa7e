#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/internal/head_inbox.h"
#include "client/internal/head_link.h"
#include "client/internal/head_stream.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// What carries the tokens of a head call in place of its messages: one of
/// these, or none.
struct HeadCarrier {
  std::unique_ptr<HeadInbox> inbox = nullptr;
  std::unique_ptr<HeadLink> link = nullptr;
};

/// Opens a `LinearCrossEntropy` stream and sends its header.
absl::StatusOr<std::unique_ptr<HeadStream>> OpenGrpcHeadStream(
    v1::LmHeadService::Stub& stub, const HeadHeader& header,
    const CallContext& context, HeadCarrier carrier = {});

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_
