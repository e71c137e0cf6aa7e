#ifndef ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_
#define ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/checkpoint/manifest.h"

namespace rowhouse::server {

/// A table of a checkpoint. Its shards are there by index, cover the table
/// without gap or overlap, and agree in all but their rows.
struct LoadedTable {
  TableEntry entry;
  std::vector<ShardManifest> shards;  ///< At least one.

  int64_t row_count() const {
    return shards.back().first_row_id + shards.back().row_count;
  }
  const std::vector<ColumnSpec>& columns() const {
    return shards.front().file.columns;
  }
  int64_t saved_row_count() const;
  int64_t size_bytes() const;  ///< Of its shards' data files.
};

/// Why shards of a table are not of one table, and which of them shows it.
struct Disagreement {
  size_t shard = 0;
  std::string what;
};

/// Nothing where all is as `LoadedTable` says.
///
/// REQUIRES: as many shards as the entry has, at least one.
std::optional<Disagreement> DisagreementIn(const LoadedTable& table);

/// A whole checkpoint's manifests.
struct LoadedCheckpoint {
  Manifest manifest;
  std::vector<LoadedTable> tables;  ///< By name.

  /// Null if it does not have the table.
  const LoadedTable* Find(std::string_view table) const;
  /// Of data files and trainer states.
  int64_t size_bytes() const;
};

/// Why `delta` cannot be based on its table in `base`; or nothing.
///
/// REQUIRES: `delta` has a base.
std::optional<std::string> DisagreementWith(const LoadedCheckpoint& base,
                                            const LoadedTable& delta);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_
