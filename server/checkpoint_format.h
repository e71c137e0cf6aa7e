#ifndef ROWHOUSE_SERVER_CHECKPOINT_FORMAT_H_
#define ROWHOUSE_SERVER_CHECKPOINT_FORMAT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/v1/table.pb.h"
#include "server/checkpoint/shard_file.h"
#include "server/shard/shard.h"

/// What a table's shards and specs are in the files of a checkpoint.
namespace rowhouse::server {

/// Side tensor F32 [event]: beta2 of each event from 1 on.
inline constexpr char kBeta2History[] = "beta2_history";

/// A table's name in files, `{table}` of `tables/{table}`.
std::string ShortName(std::string_view table);

/// The columns of `RowColumnsOf`.
std::vector<ColumnSpec> FileColumnsOf(const ShardSpec& spec);

absl::StatusOr<nlohmann::json> SpecToJson(const v1::TableSpec& spec);

/// Errors:
///   kDataLoss  DAMAGED: it is no spec; says why.
absl::StatusOr<v1::TableSpec> SpecFromJson(const nlohmann::json& json);

/// NOT_FOUND NO_SUCH_CHECKPOINT: `checkpoint` does not have `table`.
absl::Status TableNotSavedError(std::string_view checkpoint,
                                std::string_view table);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_FORMAT_H_
