#include "client/internal/grpc_shard_channel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/grpc_call.h"
#include "client/internal/grpc_checkpoint_channel.h"
#include "client/internal/grpc_connection.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/grpc_head_stream.h"
#include "client/internal/grpc_record_stream.h"
#include "client/internal/grpc_rows.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int64_t kMessageBytes = int64_t{1} << 20;

// A request about a trainer's session on a table.
template <typename Request>
Request ForTrainer(std::string_view table, const TrainerSession& trainer) {
  Request request;
  request.set_table(ResourceName(table));
  *request.mutable_trainer() = ToProto(trainer);
  return request;
}

class GrpcShardChannel final : public ShardChannel {
 public:
  GrpcShardChannel(
      std::string address,
      const std::vector<std::shared_ptr<grpc::Channel>>& connections,
      std::shared_ptr<kernels::Backend> device)
      : address_(std::move(address)),
        send_blocks_(
            [device = std::move(device)] { return MakeSendBlock(device); }) {
    for (const std::shared_ptr<grpc::Channel>& connection : connections) {
      connections_.push_back(std::make_unique<GrpcConnection>(connection));
    }
    checkpoints_ = MakeGrpcCheckpointChannel(*connections_.front());
  }

  const std::string& address() const override { return address_; }

  absl::StatusOr<ServerInfo> GetServer(const CallContext& context) override {
    v1::GetServerResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).servers,
                                   &v1::ServerService::Stub::GetServer, context,
                                   v1::GetServerRequest(), response));
    return FromProto(response, address_);
  }

  absl::StatusOr<ShardTable> CreateTable(std::string_view table,
                                         const TableSpec& spec,
                                         const CallContext& context) override {
    v1::CreateTableRequest request;
    request.set_name(ResourceName(table));
    *request.mutable_spec() = ToProto(spec);
    v1::CreateTableResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).tables,
                                   &v1::TableService::Stub::CreateTable,
                                   context, request, response));
    return FromProto(response.table());
  }

  absl::StatusOr<ShardTable> GetTable(std::string_view table,
                                      const CallContext& context) override {
    v1::GetTableRequest request;
    request.set_name(ResourceName(table));
    v1::GetTableResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).tables,
                                   &v1::TableService::Stub::GetTable, context,
                                   request, response));
    return FromProto(response.table());
  }

  absl::StatusOr<ShardTablePage> ListTables(
      const std::string& page_token, const CallContext& context) override {
    v1::ListTablesRequest request;
    request.set_page_token(page_token);
    v1::ListTablesResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).tables,
                                   &v1::TableService::Stub::ListTables, context,
                                   request, response));
    ShardTablePage page;
    page.next_page_token = response.next_page_token();
    for (const v1::Table& table : response.tables()) {
      absl::StatusOr<ShardTable> shard = FromProto(table);
      // Tables of a kind to come are none of this interface's.
      if (absl::IsUnimplemented(shard.status())) continue;
      ROWHOUSE_RETURN_IF_ERROR(shard.status());
      page.tables.push_back(*std::move(shard));
    }
    return page;
  }

  absl::Status UpdateTable(std::string_view table, int32_t trainer_count,
                           int64_t from_event,
                           const CallContext& context) override {
    v1::UpdateTableRequest request;
    request.set_name(ResourceName(table));
    request.set_trainer_count(trainer_count);
    request.set_from_event(from_event);
    v1::UpdateTableResponse response;
    return Unary(First(context).tables, &v1::TableService::Stub::UpdateTable,
                 context, request, response);
  }

  absl::Status ResetTable(std::string_view table,
                          const CallContext& context) override {
    v1::ResetTableRequest request;
    request.set_name(ResourceName(table));
    v1::ResetTableResponse response;
    return Unary(First(context).tables, &v1::TableService::Stub::ResetTable,
                 context, request, response);
  }

  absl::Status DeleteTable(std::string_view table,
                           const CallContext& context) override {
    v1::DeleteTableRequest request;
    request.set_name(ResourceName(table));
    v1::DeleteTableResponse response;
    return Unary(First(context).tables, &v1::TableService::Stub::DeleteTable,
                 context, request, response);
  }

  absl::StatusOr<ShardDigest> DigestTable(std::string_view table,
                                          std::optional<int64_t> exact_event,
                                          const CallContext& context) override {
    v1::DigestTableRequest request;
    request.set_name(ResourceName(table));
    if (exact_event.has_value()) request.set_exact_event(*exact_event);
    v1::DigestTableResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).tables,
                                   &v1::TableService::Stub::DigestTable,
                                   context, request, response));
    return ShardDigest{response.event(),
                       static_cast<uint64_t>(response.row_sum()),
                       static_cast<uint64_t>(response.history_sum())};
  }

  absl::Status ImportRows(std::string_view table, int64_t first_row_id,
                          DType dtype, int64_t row_bytes,
                          std::span<const std::byte> rows,
                          const CallContext& context) override;

  absl::StatusOr<absl::Duration> OpenSession(
      std::string_view table, TrainerSession trainer, int64_t owner,
      const CallContext& context) override {
    auto request = ForTrainer<v1::OpenSessionRequest>(table, trainer);
    request.set_owner(owner);
    v1::OpenSessionResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).events,
                                   &v1::EventService::Stub::OpenSession,
                                   context, request, response));
    return FromProto(response.lease_duration());
  }

  absl::StatusOr<absl::Duration> KeepAlive(
      std::string_view table, TrainerSession trainer,
      const CallContext& context) override {
    auto request = ForTrainer<v1::KeepAliveRequest>(table, trainer);
    v1::KeepAliveResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).events,
                                   &v1::EventService::Stub::KeepAlive, context,
                                   request, response));
    return FromProto(response.lease_duration());
  }

  absl::Status Seal(std::string_view table, TrainerSession trainer,
                    int64_t event, int32_t part_count,
                    const CallContext& context) override {
    auto request = ForTrainer<v1::SealContributionRequest>(table, trainer);
    request.set_event(event);
    request.set_part_count(part_count);
    v1::SealContributionResponse response;
    return Unary(First(context).events,
                 &v1::EventService::Stub::SealContribution, context, request,
                 response);
  }

  absl::Status Discard(std::string_view table, TrainerSession trainer,
                       int64_t event, const CallContext& context) override {
    auto request = ForTrainer<v1::DiscardContributionRequest>(table, trainer);
    request.set_event(event);
    v1::DiscardContributionResponse response;
    return Unary(First(context).events,
                 &v1::EventService::Stub::DiscardContribution, context, request,
                 response);
  }

  absl::StatusOr<EventState> GetEventState(
      std::string_view table, const EventWait& wait,
      const CallContext& context) override {
    v1::GetEventStateResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).events,
                                   &v1::EventService::Stub::GetEventState,
                                   context, ToProto(table, wait), response));
    return FromProto(response);
  }

  absl::StatusOr<ShardStatistics> GetEventStatistics(
      std::string_view table, int64_t event,
      const CallContext& context) override {
    v1::GetEventStatisticsRequest request;
    request.set_table(ResourceName(table));
    request.set_event(event);
    v1::GetEventStatisticsResponse response;
    ROWHOUSE_RETURN_IF_ERROR(Unary(First(context).events,
                                   &v1::EventService::Stub::GetEventStatistics,
                                   context, request, response));
    return ShardStatistics{{response.significand_sums().begin(),
                            response.significand_sums().end()},
                           response.row_count(),
                           response.non_finite_row_count()};
  }

  absl::Status Commit(std::string_view table, TrainerSession trainer,
                      int64_t event, const EventCommit& commit,
                      const CallContext& context) override {
    auto request = ForTrainer<v1::CommitEventRequest>(table, trainer);
    request.set_event(event);
    *request.mutable_commit() = ToProto(commit);
    v1::CommitEventResponse response;
    return Unary(First(context).events, &v1::EventService::Stub::CommitEvent,
                 context, request, response);
  }

  absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                  const CallContext& context) override {
    return PullOverGrpc(Next(context).channel, call, sink, context);
  }
  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override {
    return PushOverGrpc(Next(context).channel, call, send_blocks_, context);
  }

  absl::StatusOr<std::unique_ptr<RecordStream>> OpenRecording(
      const RecordCall& call, const CallContext& context) override {
    return OpenGrpcRecordStream(Next(context).events, call, context);
  }

  absl::StatusOr<std::unique_ptr<HeadStream>> OpenHead(
      const HeadHeader& header, const CallContext& context) override {
    return OpenGrpcHeadStream(Next(context).heads, header, context);
  }

  CheckpointChannel& checkpoints() override { return *checkpoints_; }

 private:
  // The connection of the small calls.
  GrpcConnection& First(const CallContext& context) {
    connections_.front()->AwaitReconnect(context);
    return *connections_.front();
  }
  // Bulk calls take turns.
  GrpcConnection& Next(const CallContext& context) {
    const size_t turn = next_.fetch_add(1, std::memory_order_relaxed);
    GrpcConnection& connection = *connections_[turn % connections_.size()];
    connection.AwaitReconnect(context);
    return connection;
  }

  const std::string address_;
  std::vector<std::unique_ptr<GrpcConnection>> connections_;
  std::unique_ptr<CheckpointChannel> checkpoints_;
  std::atomic<size_t> next_ = 0;
  wire::BlockPool send_blocks_;  // Of pushes.
};

absl::Status GrpcShardChannel::ImportRows(std::string_view table,
                                          int64_t first_row_id, DType dtype,
                                          int64_t row_bytes,
                                          std::span<const std::byte> data,
                                          const CallContext& context) {
  const int64_t row_count = static_cast<int64_t>(data.size()) / row_bytes;
  const int64_t message_rows = std::max<int64_t>(1, kMessageBytes / row_bytes);
  GrpcCall call(context);
  v1::ImportRowsResponse response;
  const auto writer = Next(context).rows.ImportRows(call.get(), &response);
  v1::ImportRowsRequest message;
  v1::ImportRowsHeader& header = *message.mutable_header();
  header.set_table(ResourceName(table));
  header.set_first_row_id(first_row_id);
  header.set_row_count(row_count);
  header.set_dtype(ToProto(dtype));
  int64_t first = 0;
  do {
    const int64_t count = std::min(message_rows, row_count - first);
    message.set_first_row(first);
    message.set_rows(data.data() + first * row_bytes, count * row_bytes);
    if (!writer->Write(message)) break;
    message.clear_header();
    first += count;
  } while (first < row_count);
  writer->WritesDone();
  return wire::FromGrpc(writer->Finish());
}

}  // namespace

std::unique_ptr<ShardChannel> MakeGrpcShardChannel(
    std::string address,
    const std::vector<std::shared_ptr<grpc::Channel>>& connections,
    std::shared_ptr<kernels::Backend> device) {
  return std::make_unique<GrpcShardChannel>(std::move(address), connections,
                                            std::move(device));
}

}  // namespace rowhouse::client::internal
