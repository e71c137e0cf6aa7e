#ifndef ROWHOUSE_SERVER_SERVICE_TABLE_LIST_H_
#define ROWHOUSE_SERVER_SERVICE_TABLE_LIST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rowhouse/v1/table.pb.h"
#include "rowhouse/v1/table_service.pb.h"
#include "server/service/unary_call.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `table` as the wire shows it, `info` being what only the shard knows.
v1::Table ToProto(const ServedTable& table, const ShardInfo& info);

/// A page of ListTables.
struct TablePage {
  std::vector<std::shared_ptr<ServedTable>> tables;
  std::string next_page_token;  ///< Empty on the last page.
};

/// The page that `request` asks for: as many tables as it may have and as fit
/// into one message.
///
/// Errors:
///   kInvalidArgument  BAD_PAGE.
absl::StatusOr<TablePage> FindPage(const v1::ListTablesRequest& request,
                                   const TableRegistry& tables);

/// Asks every shard of `page`, then ends `call` with `response`. Tables that
/// are deleted meanwhile are left out.
void AnswerPage(TablePage page, UnaryCall& call,
                v1::ListTablesResponse* response);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_TABLE_LIST_H_
