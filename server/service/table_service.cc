#include "server/service/table_service.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/table_list.h"
#include "server/service/unary_call.h"
#include "server/shard/shard.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

constexpr int32_t kMaxTrainerCount = 4096;

// Gives the call the shard of the table `name`.
absl::StatusOr<std::shared_ptr<ServedTable>> AttachTable(
    const TableRegistry& tables, const std::string& name, UnaryCall& call) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<ServedTable> table,
                            tables.Find(name));
  call.active().Attach(std::shared_ptr<Shard>(table, table->shard.get()));
  return table;
}

// Answers with the table once its shard has told about itself. The call keeps
// the table.
Done<ShardInfo> EndingWithTable(UnaryCall& call, const ServedTable& table,
                                v1::GetTableResponse* response) {
  return call.Ending<ShardInfo>([&table, response](const ShardInfo& info) {
    *response->mutable_table() = ToProto(table, info);
  });
}

// The same; and nothing of the call keeps the table once its answer is there:
// who deletes it then finds its memory free.
Done<ShardInfo> EndingTheCreation(UnaryCall& call,
                                  std::shared_ptr<ServedTable> table,
                                  v1::CreateTableResponse* response) {
  return [&call, response,
          table = std::move(table)](absl::StatusOr<ShardInfo> info) mutable {
    if (info.ok()) *response->mutable_table() = ToProto(*table, *info);
    table = nullptr;
    call.active().Attach(nullptr);
    call.End(info.status());
  };
}

}  // namespace

grpc::ServerUnaryReactor* TableService::CreateTable(
    grpc::CallbackServerContext* context, const v1::CreateTableRequest* request,
    v1::CreateTableResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckTableName(request->name()));
    if (!request->has_spec()) return MissingError("spec");
    tables_.Create(
        request->name(), request->spec(), call.call(),
        [&call, response](absl::StatusOr<CreatedTable> created) {
          if (!created.ok()) return call.End(created.status());
          response->set_existed(created->existed);
          std::shared_ptr<ServedTable> table = std::move(created->table);
          Shard& shard = *table->shard;
          call.active().Attach(std::shared_ptr<Shard>(table, &shard));
          shard.GetInfo(call.call(), EndingTheCreation(call, table, response));
        });
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::GetTable(
    grpc::CallbackServerContext* context, const v1::GetTableRequest* request,
    v1::GetTableResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<ServedTable> table,
                              AttachTable(tables_, request->name(), call));
    table->shard->GetInfo(call.call(), EndingWithTable(call, *table, response));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::ListTables(
    grpc::CallbackServerContext* context, const v1::ListTablesRequest* request,
    v1::ListTablesResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(TablePage page, FindPage(*request, tables_));
    AnswerPage(std::move(page), call, response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::UpdateTable(
    grpc::CallbackServerContext* context, const v1::UpdateTableRequest* request,
    v1::UpdateTableResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<ServedTable> table,
                              AttachTable(tables_, request->name(), call));
    const int32_t trainer_count = request->trainer_count();
    if (trainer_count < 1 || trainer_count > kMaxTrainerCount) {
      return FieldError(reasons::kBadCount, "trainer_count",
                        int64_t{trainer_count}, "in [1, 4096]");
    }
    const int64_t from_event = request->from_event();
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("from_event", from_event, 1));
    ROWHOUSE_ASSIGN_OR_RETURN(const int64_t wanted_bytes,
                              tables_.BeginChange(*table, trainer_count));
    table->shard->SetTrainerCount(
        trainer_count, from_event, call.call(),
        [&call, response, wanted_bytes, this,
         &table = *table](absl::StatusOr<ShardInfo> info) {
          tables_.EndChange(table, wanted_bytes, info.ok());
          if (info.ok()) {
            spdlog::info("{}: trainer counts changed", table.name);
            *response->mutable_table() = ToProto(table, *info);
          }
          call.End(info.status());
        });
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::ResetTable(
    grpc::CallbackServerContext* context, const v1::ResetTableRequest* request,
    v1::ResetTableResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<ServedTable> table,
                              AttachTable(tables_, request->name(), call));
    table->shard->Reset(call.call(),
                        call.Ending<ShardInfo>(
                            [&table = *table, response](const ShardInfo& info) {
                              spdlog::info("{}: reset", table.name);
                              *response->mutable_table() = ToProto(table, info);
                            }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::DeleteTable(
    grpc::CallbackServerContext* context, const v1::DeleteTableRequest* request,
    v1::DeleteTableResponse* /*response*/) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckTableName(request->name()));
    tables_.Delete(request->name(), call.call(), [&call](absl::Status status) {
      call.End(std::move(status));
    });
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* TableService::DigestTable(
    grpc::CallbackServerContext* context, const v1::DigestTableRequest* request,
    v1::DigestTableResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<ServedTable> table,
                              AttachTable(tables_, request->name(), call));
    std::optional<int64_t> exact_event;
    if (request->has_exact_event()) {
      exact_event = request->exact_event();
      ROWHOUSE_RETURN_IF_ERROR(CheckEvent("exact_event", *exact_event, 0));
      call.active().BeginWait();
    }
    table->shard->Digest(
        exact_event, call.call(),
        call.Ending<ShardDigest>([response](const ShardDigest& digest) {
          response->set_event(digest.event);
          response->set_row_sum(static_cast<int64_t>(digest.row_sum));
          response->set_history_sum(static_cast<int64_t>(digest.history_sum));
        }));
    return absl::OkStatus();
  });
}

}  // namespace rowhouse::server
