#ifndef ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_
#define ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_

#include <cstdint>
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

/// A whole checkpoint's manifests.
struct LoadedCheckpoint {
  Manifest manifest;
  std::vector<LoadedTable> tables;  ///< By name.

  /// Null if it does not have the table.
  const LoadedTable* Find(std::string_view table) const;
  /// Of data files and trainer states.
  int64_t size_bytes() const;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_LOADED_CHECKPOINT_H_
