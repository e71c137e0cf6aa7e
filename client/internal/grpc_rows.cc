#include "client/internal/grpc_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/part_rows.h"
#include "client/internal/raw_stream.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "proto/wire/row_message.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/v1/row_service.pb.h"

namespace rowhouse::client::internal {
namespace {

constexpr char kPullRows[] = "/rowhouse.v1.RowService/PullRows";
constexpr char kPushGradients[] = "/rowhouse.v1.RowService/PushGradients";
constexpr int64_t kBlockBytes = int64_t{1} << 20;

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

// Goes after whatever sends from it, so it keeps its backend.
struct PinnedBlock {
  PinnedBlock(std::shared_ptr<kernels::Backend> of, kernels::Buffer buffer)
      : device(std::move(of)), memory(std::move(buffer)) {}

  std::shared_ptr<kernels::Backend> device;
  kernels::Buffer memory;
};

// The messages' rows of a push, one block after another. A device fills the
// next block while one is sent.
class PartBlocks {
 public:
  PartBlocks(const PushCall& push, wire::BlockPool& blocks)
      : push_(push), blocks_(blocks) {}
  // Nothing may read the caller's buffer, or write a block, after this.
  ~PartBlocks() {
    if (filling_) push_.device->Synchronize().IgnoreError();
  }
  PartBlocks(const PartBlocks&) = delete;
  PartBlocks& operator=(const PartBlocks&) = delete;

  int64_t CountFrom(int64_t first) const {
    return std::min(push_.message_row_count, push_.selection->size() - first);
  }

  // Called with the first row of each message in turn.
  absl::StatusOr<grpc::Slice> Next(int64_t first) {
    if (!filling_) ROWHOUSE_RETURN_IF_ERROR(Fill(first));
    if (push_.device != nullptr) {
      filling_ = false;
      ROWHOUSE_RETURN_IF_ERROR(push_.device->Synchronize());
    }
    const int64_t count = CountFrom(first);
    grpc::Slice slice = std::move(block_).ToSlice(count * push_.row_bytes);
    if (push_.device != nullptr && first + count < push_.selection->size()) {
      ROWHOUSE_RETURN_IF_ERROR(Fill(first + count));
    }
    return slice;
  }

 private:
  absl::Status Fill(int64_t first) {
    ROWHOUSE_ASSIGN_OR_RETURN(block_, blocks_.Take());
    filling_ = push_.device != nullptr;
    return GatherPart(push_, first, CountFrom(first), block_.data());
  }

  const PushCall& push_;
  wire::BlockPool& blocks_;
  wire::BlockPool::Block block_;
  bool filling_ = false;
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
  if (stream.WriteLast(wire::ToByteBuffer(ToProto(pull)))) {
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

absl::StatusOr<wire::BlockPool::Memory> MakeSendBlock(
    const std::shared_ptr<kernels::Backend>& device) {
  if (device != nullptr) {
    ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer pinned,
                              device->AllocateHost(kBlockBytes));
    auto* const bytes = pinned.as<std::byte>();
    const auto held = std::make_shared<PinnedBlock>(device, std::move(pinned));
    return wire::BlockPool::Memory(held, bytes);
  }
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
  PartBlocks rows(push, blocks);
  int64_t first = 0;
  bool open = true;
  do {
    const int64_t count = rows.CountFrom(first);
    fields.set_first_row(first);
    if (push.handles.empty()) {
      const auto ids = selection.row_ids.begin() + first;
      fields.mutable_row_ids()->Clear();
      fields.mutable_row_ids()->Add(ids, ids + count);
    }
    ROWHOUSE_ASSIGN_OR_RETURN(grpc::Slice slice, rows.Next(first));
    const grpc::ByteBuffer message = wire::JoinRows(fields, std::move(slice));
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
