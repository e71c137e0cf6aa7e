#include "server/checkpoint/loaded_checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace rowhouse::server {

int64_t LoadedTable::saved_row_count() const {
  int64_t count = 0;
  for (const ShardManifest& shard : shards) count += shard.file.row_count;
  return count;
}

int64_t LoadedTable::size_bytes() const {
  int64_t bytes = 0;
  for (const ShardManifest& shard : shards) bytes += shard.summary.size_bytes;
  return bytes;
}

const LoadedTable* LoadedCheckpoint::Find(std::string_view table) const {
  for (const LoadedTable& candidate : tables) {
    if (candidate.entry.table == table) return &candidate;
  }
  return nullptr;
}

int64_t LoadedCheckpoint::size_bytes() const {
  int64_t bytes = 0;
  for (const LoadedTable& table : tables) bytes += table.size_bytes();
  for (const TrainerStateEntry& state : manifest.trainer_states) {
    bytes += state.size_bytes;
  }
  return bytes;
}

std::optional<Disagreement> DisagreementIn(const LoadedTable& table) {
  int64_t next_row_id = 0;
  for (size_t i = 0; i < table.shards.size(); ++i) {
    const ShardManifest& shard = table.shards[i];
    if (shard.table != table.entry.table) {
      return Disagreement{i, absl::StrCat("it is of table ", shard.table)};
    }
    if (shard.shard_index != static_cast<int64_t>(i) ||
        shard.shard_count != static_cast<int64_t>(table.shards.size())) {
      return Disagreement{i, absl::StrCat("it is shard ", shard.shard_index,
                                          " of ", shard.shard_count)};
    }
    if (shard.event != table.entry.event) {
      return Disagreement{i, absl::StrCat("it is as of event ", shard.event,
                                          ", not ", table.entry.event)};
    }
    if (shard.base != table.entry.base) {
      return Disagreement{i, "it has another base"};
    }
    if (shard.first_row_id != next_row_id) {
      return Disagreement{
          i, absl::StrCat("it begins at row ", shard.first_row_id, ", not ",
                          next_row_id)};
    }
    next_row_id += shard.row_count;
    if (shard.spec != table.shards.front().spec ||
        shard.file.columns != table.columns()) {
      return Disagreement{i, "its spec or columns are not shard 0's"};
    }
  }
  return std::nullopt;
}

std::optional<std::string> DisagreementWith(const LoadedCheckpoint& base,
                                            const LoadedTable& delta) {
  const std::string name =
      absl::StrCat("table ", delta.entry.table, " of its base ",
                   delta.entry.base->checkpoint);
  const LoadedTable* table = base.Find(delta.entry.table);
  if (table == nullptr) return absl::StrCat("there is no ", name);
  if (table->entry.event != delta.entry.base->event) {
    return absl::StrCat(name, " is as of event ", table->entry.event, ", not ",
                        delta.entry.base->event);
  }
  if (table->row_count() != delta.row_count() ||
      table->columns() != delta.columns()) {
    return absl::StrCat(name, " has another row count or other columns");
  }
  return std::nullopt;
}

}  // namespace rowhouse::server
