#include "client/internal/grpc_checkpoint_channel.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/internal/checkpoint_convert.h"
#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

using Stub = v1::CheckpointService::Stub;

constexpr int64_t kMessageBytes = int64_t{1} << 20;

// A request that names a checkpoint and nothing else yet.
template <typename Request>
Request ForCheckpoint(std::string_view checkpoint) {
  Request request;
  request.set_name(CheckpointResourceName(checkpoint));
  return request;
}

class GrpcCheckpointChannel final : public CheckpointChannel {
 public:
  explicit GrpcCheckpointChannel(GrpcConnection& connection)
      : connection_(connection) {}

  absl::Status Write(const CheckpointPlan& plan, ProgressSink progress,
                     const CallContext& context) override {
    v1::WriteCheckpointRequest request;
    Fill(plan, request);
    return Follow(&Stub::WriteCheckpoint, request, progress, context);
  }

  absl::StatusOr<PublishedCheckpoint> Publish(
      const CheckpointPlan& plan, const CallContext& context) override {
    v1::PublishCheckpointRequest request;
    Fill(plan, request);
    request.set_trainer_state_count(plan.trainer_state_count);
    v1::PublishCheckpointResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(Connected(context), &Stub::PublishCheckpoint,
                                   context, request, response));
    return FromProto(response);
  }

  absl::Status Restore(std::string_view checkpoint, std::string_view table,
                       ProgressSink progress,
                       const CallContext& context) override {
    auto request = ForCheckpoint<v1::RestoreTableRequest>(checkpoint);
    request.set_table(ResourceName(table));
    return Follow(&Stub::RestoreTable, request, progress, context);
  }

  absl::Status PutTrainerState(std::string_view checkpoint, int32_t rank,
                               std::span<const std::byte> state,
                               const CallContext& context) override;
  absl::StatusOr<std::vector<std::byte>> GetTrainerState(
      std::string_view checkpoint, int32_t rank,
      const CallContext& context) override;

  absl::StatusOr<CheckpointPage> List(const std::string& page_token,
                                      const CallContext& context) override {
    v1::ListCheckpointsRequest request;
    request.set_page_token(page_token);
    v1::ListCheckpointsResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(Connected(context), &Stub::ListCheckpoints,
                                   context, request, response));
    CheckpointPage page;
    page.next_page_token = response.next_page_token();
    for (const v1::Checkpoint& checkpoint : response.checkpoints()) {
      ROWHOUSE_ASSIGN_OR_RETURN(CheckpointInfo info, FromProto(checkpoint));
      page.checkpoints.push_back(std::move(info));
    }
    return page;
  }

  absl::StatusOr<CheckpointInfo> Get(std::string_view checkpoint,
                                     const CallContext& context) override {
    v1::GetCheckpointResponse response;
    ROWHOUSE_RETURN_IF_ERROR(
        Unary(Connected(context), &Stub::GetCheckpoint, context,
              ForCheckpoint<v1::GetCheckpointRequest>(checkpoint), response));
    return FromProto(response.checkpoint());
  }

  absl::Status Delete(std::string_view checkpoint, bool unfinished_only,
                      const CallContext& context) override {
    auto request = ForCheckpoint<v1::DeleteCheckpointRequest>(checkpoint);
    request.set_unfinished_only(unfinished_only);
    v1::DeleteCheckpointResponse response;
    return Unary(Connected(context), &Stub::DeleteCheckpoint, context, request,
                 response);
  }

  absl::Status Verify(std::string_view checkpoint, ProgressSink progress,
                      const CallContext& context) override {
    return Follow(&Stub::VerifyCheckpoint,
                  ForCheckpoint<v1::VerifyCheckpointRequest>(checkpoint),
                  progress, context);
  }

  absl::StatusOr<std::vector<CheckpointTableDiff>> Diff(
      std::string_view checkpoint, std::string_view other,
      ProgressSink progress, const CallContext& context) override {
    auto request = ForCheckpoint<v1::DiffCheckpointsRequest>(checkpoint);
    request.set_other_name(CheckpointResourceName(other));
    std::vector<CheckpointTableDiff> tables;
    ROWHOUSE_RETURN_IF_ERROR(
        Read(&Stub::DiffCheckpoints, request, context,
             [&](const v1::DiffCheckpointsResponse& response) {
               for (const auto& table : response.tables()) {
                 tables.push_back(FromProto(table));
               }
               progress(FromProto(response.progress()));
             }));
    return tables;
  }

  absl::Status Compact(std::string_view checkpoint,
                       std::string_view compact_name, ProgressSink progress,
                       const CallContext& context) override {
    auto request = ForCheckpoint<v1::CompactCheckpointRequest>(checkpoint);
    request.set_compact_name(CheckpointResourceName(compact_name));
    return Follow(&Stub::CompactCheckpoint, request, progress, context);
  }

 private:
  template <typename Request, typename Response>
  using StreamMethod = std::unique_ptr<grpc::ClientReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&);

  Stub& Connected(const CallContext& context) {
    connection_.AwaitReconnect(context);
    return connection_.checkpoints;
  }

  // Makes a call and passes every answer to `take`.
  template <typename Request, typename Response, typename Take>
  absl::Status Read(StreamMethod<Request, Response> method,
                    const Request& request, const CallContext& context,
                    Take take) {
    GrpcCall call(context);
    const auto reader = (Connected(context).*method)(call.get(), request);
    Response response;
    while (reader->Read(&response)) take(response);
    return wire::FromGrpc(reader->Finish());
  }

  // Makes a call whose answers tell how far it is.
  template <typename Request, typename Response>
  absl::Status Follow(StreamMethod<Request, Response> method,
                      const Request& request, ProgressSink progress,
                      const CallContext& context) {
    return Read(method, request, context, [&](const Response& response) {
      progress(FromProto(response.progress()));
    });
  }

  GrpcConnection& connection_;
};

absl::Status GrpcCheckpointChannel::PutTrainerState(
    std::string_view checkpoint, int32_t rank, std::span<const std::byte> state,
    const CallContext& context) {
  GrpcCall call(context);
  v1::PutTrainerStateResponse response;
  const auto writer = Connected(context).PutTrainerState(call.get(), &response);
  auto message = ForCheckpoint<v1::PutTrainerStateRequest>(checkpoint);
  message.set_trainer_rank(rank);
  message.set_size_bytes(std::ssize(state));
  size_t sent = 0;
  do {
    const auto piece = state.subspan(
        sent, std::min<size_t>(kMessageBytes, state.size() - sent));
    message.set_state(piece.data(), piece.size());
    if (!writer->Write(message)) break;
    message.Clear();
    sent += piece.size();
  } while (sent < state.size());
  writer->WritesDone();
  ROWHOUSE_RETURN_IF_ERROR(wire::FromGrpc(writer->Finish()));
  if (response.size_bytes() == std::ssize(state)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the server kept ", response.size_bytes(),
                   " bytes of a trainer's state, wanted ", state.size()));
}

absl::StatusOr<std::vector<std::byte>> GrpcCheckpointChannel::GetTrainerState(
    std::string_view checkpoint, int32_t rank, const CallContext& context) {
  auto request = ForCheckpoint<v1::GetTrainerStateRequest>(checkpoint);
  request.set_trainer_rank(rank);
  std::vector<std::byte> state;
  ROWHOUSE_RETURN_IF_ERROR(
      Read(&Stub::GetTrainerState, request, context,
           [&](const v1::GetTrainerStateResponse& response) {
             const auto* bytes =
                 reinterpret_cast<const std::byte*>(response.state().data());
             state.insert(state.end(), bytes, bytes + response.state().size());
           }));
  return state;
}

}  // namespace

std::unique_ptr<CheckpointChannel> MakeGrpcCheckpointChannel(
    GrpcConnection& connection) {
  return std::make_unique<GrpcCheckpointChannel>(connection);
}

}  // namespace rowhouse::client::internal
