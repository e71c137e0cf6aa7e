#ifndef ROWHOUSE_CLIENT_CLI_TABLE_VIEW_H_
#define ROWHOUSE_CLIENT_CLI_TABLE_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rowhouse/survey.h"

namespace rowhouse::cli {

/// A rank's part in an open event, over the shards that told.
struct RankView {
  int32_t rank = 0;
  int64_t session = 0;  ///< The newest; 0 for none.
  int32_t begun_on = 0;
  int32_t sealed_on = 0;  ///< Shards.
  int32_t part_count = 0;
  int64_t row_count = 0;    ///< Of all shards.
  int64_t token_count = 0;  ///< Of one shard: each has them all.
  /// Since the session was opened or kept alive, on the shard where that is
  /// longest ago; its calls do not count.
  std::optional<absl::Duration> idle = std::nullopt;
  bool lease_expired = false;  ///< On some shard.
};

struct OpenEventView {
  int64_t event = 0;
  std::vector<RankView> ranks;  ///< All that it waits for.

  /// Ranks that have not sealed on all of `shard_count` shards.
  std::vector<int32_t> Awaited(int32_t shard_count) const;
};

/// An applied event, summed over the shards that told.
struct AppliedEventView {
  int64_t event = 0;
  int32_t applied_on = 0;  ///< Shards that know it.
  client::EventUpdate update;
  int64_t entry_count = 0;
  int64_t row_count = 0;
  int64_t untouched_row_count = 0;
  int64_t moved_bytes = 0;
};

/// A table, put together from what its shards told.
struct TableView {
  std::string name;
  client::TableSpec spec;
  std::vector<const client::ShardState*> shards;  ///< Those that told.
  int64_t event = 0;                              ///< Applied on all of them.

  bool whole() const { return std::ssize(shards) == spec.shard_count; }
  int64_t reserved_bytes() const;

  /// The next event and those open beyond it, ascending.
  std::vector<OpenEventView> OpenEvents() const;
  /// Ascending.
  std::vector<AppliedEventView> AppliedEvents() const;
};

/// By name. The views refer to `servers`.
std::vector<TableView> TablesOf(
    const std::vector<client::ServerState>& servers);

/// `0, 2-5`.
std::string Ranks(const std::vector<int32_t>& ranks);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TABLE_VIEW_H_
