#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/pending_file.h"
#include "server/checkpoint/shard_file_reader.h"

namespace rowhouse::server {
namespace {

// Whether a checkpoint that is whole is what is to be published.
bool IsOf(const Manifest& manifest, const Publication& publication) {
  const auto has = [&](const Publication::Table& table) {
    return std::any_of(
        manifest.tables.begin(), manifest.tables.end(),
        [&](const TableEntry& entry) {
          const auto count = static_cast<int64_t>(entry.shards.size());
          return entry.table == table.table && entry.event == table.event &&
                 (table.shard_count == 0 || table.shard_count == count);
        });
  };
  return manifest.base == publication.base &&
         manifest.step == publication.step &&
         static_cast<int64_t>(manifest.trainer_states.size()) ==
             publication.trainer_state_count &&
         manifest.tables.size() == publication.tables.size() &&
         std::all_of(publication.tables.begin(), publication.tables.end(), has);
}

// How many shards the files in `directory` are of.
absl::StatusOr<int64_t> ShardCountIn(Files& files, std::string_view table,
                                     const std::string& directory) {
  absl::StatusOr<std::vector<DirectoryEntry>> entries = files.List(directory);
  if (!entries.ok() && !absl::IsNotFound(entries.status())) {
    return entries.status();
  }
  int64_t count = 0;
  if (!entries.ok()) entries.emplace();
  for (const DirectoryEntry& entry : *entries) {
    const std::optional<ShardName> name = ParseShardManifestName(entry.name);
    if (!name.has_value() || name->count == count) continue;
    if (count != 0) {
      return IncompleteError(
          absl::StrCat("there are files of ", count, " and of ", name->count,
                       " shards of table ", std::string(table)),
          directory);
    }
    count = name->count;
  }
  if (count != 0) return count;
  return IncompleteError(
      absl::StrCat("there is no shard of table ", std::string(table)),
      directory);
}

// Reads a shard's manifest and looks at its data file.
absl::StatusOr<ShardManifest> CheckShard(const CheckpointDirectory& directory,
                                         const ShardName& name,
                                         uint64_t& checksum) {
  const std::string path = directory.paths().ShardManifest(name);
  const absl::StatusOr<std::string> text =
      ReadWholeFile(directory.files(), path);
  if (absl::IsNotFound(text.status())) {
    return IncompleteError(
        absl::StrCat("shard ", name.index, " of ", name.count, " of table ",
                     name.table, " is missing"),
        path);
  }
  ROWHOUSE_RETURN_IF_ERROR(text.status());
  checksum = ChecksumOf(*text);
  ROWHOUSE_ASSIGN_OR_RETURN(ShardManifest manifest,
                            ParseShardManifest(path, *text));
  ROWHOUSE_RETURN_IF_ERROR(
      ShardFileReader::Open(directory.files(),
                            directory.paths().ShardFile(name), manifest.file,
                            manifest.summary)
          .status());
  return manifest;
}

absl::StatusOr<LoadedTable> CheckTable(const CheckpointDirectory& directory,
                                       const Publication& publication,
                                       const Publication::Table& wanted) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("table", wanted.table));
  ShardName name = {publication.checkpoint, wanted.table, 0,
                    wanted.shard_count};
  if (name.count == 0) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        name.count,
        ShardCountIn(directory.files(), wanted.table,
                     directory.paths().Table(name.checkpoint, name.table)));
  }
  LoadedTable table;
  table.entry = {wanted.table, wanted.event, std::nullopt, {}};
  for (; name.index < name.count; ++name.index) {
    uint64_t checksum = 0;
    ROWHOUSE_ASSIGN_OR_RETURN(ShardManifest shard,
                              CheckShard(directory, name, checksum));
    table.entry.shards.push_back({RelativeManifestPath(name), checksum});
    table.shards.push_back(std::move(shard));
  }
  table.entry.base = table.shards.front().base;
  if (const auto fault = DisagreementIn(table)) {
    name.index = static_cast<int64_t>(fault->shard);
    return IncompleteError(fault->what, directory.paths().ShardManifest(name));
  }
  return table;
}

absl::Status CheckBase(const std::optional<LoadedCheckpoint>& base,
                       const std::string& base_name, const LoadedTable& table,
                       const std::string& file) {
  if (!table.entry.base.has_value()) return absl::OkStatus();
  if (table.entry.base->checkpoint != base_name) {
    return IncompleteError(
        absl::StrCat("table ", table.entry.table, " is based on checkpoint ",
                     table.entry.base->checkpoint),
        file);
  }
  if (const auto fault = DisagreementWith(*base, table)) {
    return IncompleteError(*fault, file);
  }
  return absl::OkStatus();
}

// Files of attempts that did not come to an end; nobody needs them.
void RemoveTemporaries(Files& files, const std::string& directory) {
  const auto entries = files.List(directory);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = absl::StrCat(directory, "/", entry.name);
    if (entry.is_directory) {
      RemoveTemporaries(files, path);
    } else if (std::string_view(entry.name).ends_with(kTemporarySuffix) &&
               IsFileOfCheckpoints(entry.name)) {
      files.Remove(path).IgnoreError();
    }
  }
}

}  // namespace

absl::StatusOr<TrainerStateEntry> CheckpointDirectory::CheckTrainerState(
    std::string_view checkpoint, int64_t rank) {
  const std::string path = paths_.TrainerStateManifest(checkpoint, rank);
  const absl::StatusOr<std::string> text = ReadWholeFile(files_, path);
  if (absl::IsNotFound(text.status())) {
    return IncompleteError(
        absl::StrCat("the state of trainer ", rank, " is missing"), path);
  }
  ROWHOUSE_RETURN_IF_ERROR(text.status());
  ROWHOUSE_ASSIGN_OR_RETURN(const TrainerStateEntry entry,
                            ParseTrainerState(path, *text));
  ROWHOUSE_RETURN_IF_ERROR(CheckStateFile(checkpoint, entry).status());
  return entry;
}

absl::StatusOr<Manifest> CheckpointDirectory::Publish(
    const Publication& publication) {
  const std::string& name = publication.checkpoint;
  ROWHOUSE_RETURN_IF_ERROR(CheckName("checkpoint", name));
  const std::string path = paths_.Manifest(name);
  ROWHOUSE_ASSIGN_OR_RETURN(const bool is_whole, files_.Exists(path));
  if (is_whole) {
    ROWHOUSE_ASSIGN_OR_RETURN(Manifest manifest, LoadManifest(name));
    if (!IsOf(manifest, publication)) return CheckpointExistsError(name, path);
    // The call before may not have come so far.
    ROWHOUSE_RETURN_IF_ERROR(files_.SyncDirectory(paths_.Checkpoint(name)));
    return manifest;
  }
  Manifest manifest = {
      name, publication.step, publication.created_time, publication.base, {},
      {}};
  std::optional<LoadedCheckpoint> base;
  if (!publication.base.empty()) {
    ROWHOUSE_ASSIGN_OR_RETURN(base, Load(publication.base));
  }
  for (const Publication::Table& wanted : publication.tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(LoadedTable table,
                              CheckTable(*this, publication, wanted));
    ROWHOUSE_RETURN_IF_ERROR(CheckBase(base, publication.base, table,
                                       paths_.Table(name, wanted.table)));
    manifest.tables.push_back(std::move(table.entry));
  }
  std::sort(manifest.tables.begin(), manifest.tables.end(),
            [](const TableEntry& a, const TableEntry& b) {
              return a.table < b.table;
            });
  const auto twice =
      std::adjacent_find(manifest.tables.begin(), manifest.tables.end(),
                         [](const TableEntry& a, const TableEntry& b) {
                           return a.table == b.table;
                         });
  if (twice != manifest.tables.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", twice->table, " is named twice"));
  }
  for (int64_t rank = 0; rank < publication.trainer_state_count; ++rank) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerStateEntry entry,
                              CheckTrainerState(name, rank));
    manifest.trainer_states.push_back(entry);
  }
  RemoveTemporaries(files_, paths_.Checkpoint(name));
  ROWHOUSE_RETURN_IF_ERROR(files_.SyncDirectory(paths_.root()));
  ROWHOUSE_RETURN_IF_ERROR(WriteWholeFile(files_, path, ToText(manifest)));
  return manifest;
}

}  // namespace rowhouse::server
