#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/internal/head_inbox.h"
#include "client/internal/head_stream.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// Opens a `LinearCrossEntropy` stream and sends its header.
absl::StatusOr<std::unique_ptr<HeadStream>> OpenGrpcHeadStream(
    v1::LmHeadService::Stub& stub, const HeadHeader& header,
    const CallContext& context, std::unique_ptr<HeadInbox> inbox = nullptr);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_HEAD_STREAM_H_
