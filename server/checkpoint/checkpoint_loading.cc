#include <algorithm>
#include <cstddef>
#include <cstdint>
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

namespace rowhouse::server {
namespace {

// A file that a manifest names.
absl::StatusOr<std::string> ReadNamedFile(Files& files,
                                          const std::string& path) {
  absl::StatusOr<std::string> text = ReadWholeFile(files, path);
  if (absl::IsNotFound(text.status())) {
    return DamagedError(path, 0, "the file is missing");
  }
  return text;
}

absl::StatusOr<LoadedTable> LoadTable(const CheckpointDirectory& directory,
                                      std::string_view checkpoint,
                                      const TableEntry& entry) {
  const CheckpointPaths& paths = directory.paths();
  LoadedTable table = {entry, {}};
  ShardName name = {std::string(checkpoint), entry.table, 0,
                    static_cast<int64_t>(entry.shards.size())};
  if (entry.shards.empty()) {
    return DamagedError(paths.Manifest(checkpoint), 0,
                        absl::StrCat("table ", entry.table, " has no shards"));
  }
  for (const TableEntry::Shard& shard : entry.shards) {
    if (shard.path != RelativeManifestPath(name)) {
      return DamagedError(paths.Manifest(checkpoint), 0,
                          absl::StrCat("a shard's path is ", shard.path));
    }
    const std::string path = paths.ShardManifest(name);
    ROWHOUSE_ASSIGN_OR_RETURN(const std::string text,
                              ReadNamedFile(directory.files(), path));
    ROWHOUSE_ASSIGN_OR_RETURN(ShardManifest manifest,
                              ParseShardManifest(path, text));
    if (ChecksumOf(text) != shard.checksum) {
      return DamagedError(path, 0, "it is not the one that was published");
    }
    table.shards.push_back(std::move(manifest));
    ++name.index;
  }
  if (const auto fault = DisagreementIn(table)) {
    name.index = static_cast<int64_t>(fault->shard);
    return DamagedError(paths.ShardManifest(name), 0, fault->what);
  }
  return table;
}

}  // namespace

absl::StatusOr<Manifest> CheckpointDirectory::LoadManifest(
    std::string_view checkpoint) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("checkpoint", checkpoint));
  const std::string path = paths_.Manifest(checkpoint);
  const absl::StatusOr<std::string> text = ReadWholeFile(files_, path);
  if (absl::IsNotFound(text.status())) {
    return NoSuchCheckpointError(
        absl::StrCat("whole checkpoint ", std::string(checkpoint)), path);
  }
  ROWHOUSE_RETURN_IF_ERROR(text.status());
  ROWHOUSE_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(path, *text));
  if (manifest.checkpoint != checkpoint) {
    return DamagedError(
        path, 0, absl::StrCat("it is of checkpoint ", manifest.checkpoint));
  }
  return manifest;
}

absl::StatusOr<LoadedCheckpoint> CheckpointDirectory::Load(
    std::string_view checkpoint) {
  LoadedCheckpoint loaded;
  ROWHOUSE_ASSIGN_OR_RETURN(loaded.manifest, LoadManifest(checkpoint));
  for (const TableEntry& entry : loaded.manifest.tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(LoadedTable table,
                              LoadTable(*this, checkpoint, entry));
    loaded.tables.push_back(std::move(table));
  }
  return loaded;
}

absl::StatusOr<std::vector<LoadedCheckpoint>> CheckpointDirectory::LoadChain(
    std::string_view checkpoint) {
  std::vector<LoadedCheckpoint> newest_first;
  ROWHOUSE_ASSIGN_OR_RETURN(LoadedCheckpoint newest, Load(checkpoint));
  newest_first.push_back(std::move(newest));
  while (!newest_first.back().manifest.base.empty()) {
    const LoadedCheckpoint& delta = newest_first.back();
    const std::string& name = delta.manifest.base;
    const std::string path = paths_.Manifest(delta.manifest.checkpoint);
    for (const LoadedCheckpoint& seen : newest_first) {
      if (seen.manifest.checkpoint == name) {
        return DamagedError(path, 0, "the checkpoint is based on itself");
      }
    }
    absl::StatusOr<LoadedCheckpoint> base = Load(name);
    if (absl::IsNotFound(base.status())) {
      return DamagedError(
          paths_.Manifest(name), 0,
          absl::StrCat("the file is missing; checkpoint ",
                       delta.manifest.checkpoint, " is based on it"));
    }
    ROWHOUSE_RETURN_IF_ERROR(base.status());
    for (const LoadedTable& table : delta.tables) {
      if (!table.entry.base.has_value()) continue;
      if (const auto fault = DisagreementWith(*base, table)) {
        return DamagedError(path, 0, *fault);
      }
    }
    newest_first.push_back(*std::move(base));
  }
  std::reverse(newest_first.begin(), newest_first.end());
  return newest_first;
}

absl::StatusOr<std::string> CheckpointDirectory::CheckStateFile(
    std::string_view checkpoint, const TrainerStateEntry& entry) {
  const std::string path = paths_.TrainerState(checkpoint, entry.rank);
  ROWHOUSE_ASSIGN_OR_RETURN(std::string state, ReadNamedFile(files_, path));
  if (static_cast<int64_t>(state.size()) != entry.size_bytes) {
    return DamagedError(
        path, std::min(static_cast<int64_t>(state.size()), entry.size_bytes),
        absl::StrCat("the file has ", state.size(), " bytes, not ",
                     entry.size_bytes));
  }
  if (ChecksumOf(state) != entry.checksum) {
    return DamagedError(path, 0, "the state is not what was written");
  }
  return state;
}

absl::StatusOr<std::string> CheckpointDirectory::ReadTrainerState(
    std::string_view checkpoint, int64_t rank) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(checkpoint));
  const std::string path = paths_.TrainerStateManifest(checkpoint, rank);
  const auto entry = std::find_if(
      manifest.trainer_states.begin(), manifest.trainer_states.end(),
      [&](const TrainerStateEntry& e) { return e.rank == rank; });
  if (entry == manifest.trainer_states.end()) {
    return NoSuchCheckpointError(
        absl::StrCat("state of trainer ", rank, " in checkpoint ",
                     std::string(checkpoint)),
        path);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const std::string text,
                            ReadNamedFile(files_, path));
  ROWHOUSE_ASSIGN_OR_RETURN(const TrainerStateEntry written,
                            ParseTrainerState(path, text));
  if (written != *entry) {
    return DamagedError(path, 0, "it is not the one that was published");
  }
  return CheckStateFile(checkpoint, *entry);
}

}  // namespace rowhouse::server
