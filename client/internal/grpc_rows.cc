#include "client/internal/grpc_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/raw_stream.h"
#include "proto/wire/row_message.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/v1/row_service.pb.h"

namespace rowhouse::client::internal {
namespace {

constexpr char kPullRows[] = "/rowhouse.v1.RowService/PullRows";
constexpr char kPushGradients[] = "/rowhouse.v1.RowService/PushGradients";
constexpr int64_t kBlockBytes = int64_t{1} << 20;

v1::PullRowsRequest ToRequest(const PullCall& pull) {
  v1::PullRowsRequest request;
  request.set_table(ResourceName(pull.table));
  if (pull.handle.has_value()) {
    request.set_handle(*pull.handle);
  } else {
    request.mutable_row_ids()->Add(pull.row_ids.begin(), pull.row_ids.end());
  }
  if (pull.trainer.has_value()) {
    *request.mutable_trainer() = ToProto(*pull.trainer);
  }
  if (pull.min_event.has_value()) request.set_min_event(*pull.min_event);
  if (pull.exact_event.has_value()) request.set_exact_event(*pull.exact_event);
  request.set_return_handle(pull.return_handle);
  request.set_training(pull.training);
  return request;
}

// Puts the messages of an answer together.
class Answer {
 public:
  explicit Answer(RowSink sink) : sink_(sink) {}

  absl::Status Take(const grpc::ByteBuffer& received) {
    if (!message_.Parse(received)) {
      return absl::InternalError("an answer that is no PullRowsResponse");
    }
    const v1::PullRowsResponse& fields = message_.fields();
    if (!answer_.has_value()) {
      answer_ = {fields.event(), fields.handle(), fields.row_count()};
    } else if (fields.event() != answer_->event) {
      return absl::InternalError("rows of two events in one answer");
    }
    absl::Status landed =
        sink_(fields.first_row(), kernels::HostPieces(message_.rows()));
    message_.DropRows();
    return landed;
  }

  PullAnswer answer() const { return answer_.value_or(PullAnswer()); }

 private:
  RowSink sink_;
  wire::RowMessage<v1::PullRowsResponse> message_;
  std::optional<PullAnswer> answer_;
};

}  // namespace

absl::StatusOr<PullAnswer> PullOverGrpc(
    const std::shared_ptr<grpc::Channel>& channel, const PullCall& pull,
    RowSink sink, const CallContext& context) {
  GrpcCall call(context);
  RawStream stream(channel, kPullRows, *call.get());
  Answer answer(sink);
  absl::Status landed = absl::OkStatus();
  grpc::ByteBuffer received;
  if (stream.WriteLast(wire::ToByteBuffer(ToRequest(pull)))) {
    if (pull.watch != nullptr) pull.watch->IdsSent();
    bool first = true;
    while (stream.Read(received)) {
      if (std::exchange(first, false) && pull.watch != nullptr) {
        pull.watch->RowsBegin();
      }
      // A call that ends early is drained.
      if (!landed.ok()) continue;
      landed = answer.Take(received);
      received.Clear();
      if (!landed.ok()) call.get()->TryCancel();
    }
  }
  const absl::Status status = wire::FromGrpc(stream.Finish());
  if (!landed.ok()) return landed;
  if (!status.ok()) return status;
  return answer.answer();
}

absl::StatusOr<wire::BlockPool::Memory> MakeSendBlock() {
  // Not initialized.
  return wire::BlockPool::Memory(new std::byte[kBlockBytes],
                                 std::default_delete<std::byte[]>());
}

absl::StatusOr<PushAnswer> PushOverGrpc(
    const std::shared_ptr<grpc::Channel>& channel, const PushCall& push,
    wire::BlockPool& blocks, const CallContext& context) {
  const RowSelection& selection = *push.selection;
  GrpcCall call(context);
  RawStream stream(channel, kPushGradients, *call.get());
  v1::PushGradientsRequest fields;
  *fields.mutable_header() = ToProto(push);
  const int64_t size = selection.size();
  int64_t first = 0;
  bool open = true;
  do {
    const int64_t count = std::min(push.message_row_count, size - first);
    fields.set_first_row(first);
    if (push.handles.empty()) {
      const auto ids = selection.row_ids.begin() + first;
      fields.mutable_row_ids()->Clear();
      fields.mutable_row_ids()->Add(ids, ids + count);
    }
    ROWHOUSE_ASSIGN_OR_RETURN(wire::BlockPool::Block block, blocks.Take());
    selection.Gather(push.rows, push.row_bytes, first, count, block.data());
    const grpc::ByteBuffer message = wire::JoinRows(
        fields, std::move(block).ToSlice(count * push.row_bytes));
    first += count;
    open = first < size ? stream.Write(message) : stream.WriteLast(message);
    fields.clear_header();
  } while (open && first < size);
  grpc::ByteBuffer received;
  v1::PushGradientsResponse response;
  const bool answered = stream.Read(received);
  const bool parsed = answered && wire::FromByteBuffer(received, response);
  ROWHOUSE_RETURN_IF_ERROR(wire::FromGrpc(stream.Finish()));
  if (!parsed) return absl::InternalError("no answer to a push");
  return PushAnswer{response.event(), response.row_count(),
                    response.duplicate()};
}

}  // namespace rowhouse::client::internal
