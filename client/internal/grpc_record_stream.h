#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_RECORD_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_RECORD_STREAM_H_

#include <memory>

#include "client/internal/cancellation.h"
#include "client/internal/record_stream.h"
#include "rowhouse/v1/event_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// Opens a recording over gRPC; faults come with the first read.
std::unique_ptr<RecordStream> OpenGrpcRecordStream(v1::EventService::Stub& stub,
                                                   const RecordCall& call,
                                                   const CallContext& context);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_RECORD_STREAM_H_
