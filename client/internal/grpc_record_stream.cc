#include "client/internal/grpc_record_stream.h"

#include <optional>
#include <utility>

#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/record_convert.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

class GrpcRecordStream final : public RecordStream {
 public:
  GrpcRecordStream(v1::EventService::Stub& stub,
                   const v1::RecordEventsRequest& request,
                   const CallContext& context)
      : call_(context), reader_(stub.RecordEvents(call_.get(), request)) {}

  ~GrpcRecordStream() override {
    if (ended_) return;
    call_.get()->TryCancel();
    while (reader_->Read(&message_)) {
    }
    reader_->Finish();
  }

  absl::StatusOr<std::optional<RecordMessage>> Read() override {
    if (ended_ || !reader_->Read(&message_)) return Ended();
    if (message_.has_start()) return RecordMessage(FromProto(message_.start()));
    if (message_.has_event()) return RecordMessage(FromProto(message_.event()));
    ROWHOUSE_ASSIGN_OR_RETURN(RecordedPart part,
                              TakeFromProto(*message_.mutable_part()));
    return RecordMessage(std::move(part));
  }

 private:
  absl::StatusOr<std::optional<RecordMessage>> Ended() {
    if (!std::exchange(ended_, true)) {
      status_ = wire::FromGrpc(reader_->Finish());
    }
    if (!status_.ok()) return status_;
    return std::nullopt;
  }

  GrpcCall call_;
  const std::unique_ptr<grpc::ClientReader<v1::RecordEventsResponse>> reader_;
  v1::RecordEventsResponse message_;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<RecordStream> OpenGrpcRecordStream(v1::EventService::Stub& stub,
                                                   const RecordCall& call,
                                                   const CallContext& context) {
  v1::RecordEventsRequest request;
  request.set_table(ResourceName(call.table));
  request.set_buffer_bytes(call.buffer_bytes);
  if (call.last_event.has_value()) request.set_last_event(*call.last_event);
  request.set_digest(call.digest);
  request.set_targets_only(call.targets_only);
  return std::make_unique<GrpcRecordStream>(stub, request, context);
}

}  // namespace rowhouse::client::internal
