#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/pending_file.h"
#include "server/checkpoint/shard_file_writer.h"

namespace rowhouse::server {
namespace {

// Also that it stays away: a crash must not bring back a manifest of earlier
// data.
absl::Status RemoveIfThere(Files& files, const std::string& path) {
  ROWHOUSE_ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return absl::OkStatus();
  return RemoveLasting(files, path);
}

ShardName NameOf(std::string_view checkpoint, const ShardManifest& manifest) {
  return {std::string(checkpoint), manifest.table, manifest.shard_index,
          manifest.shard_count};
}

}  // namespace

absl::Status CheckpointDirectory::CheckNotWhole(std::string_view checkpoint) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("checkpoint", checkpoint));
  const std::string manifest = paths_.Manifest(checkpoint);
  ROWHOUSE_ASSIGN_OR_RETURN(const bool is_whole, files_.Exists(manifest));
  if (is_whole) return CheckpointExistsError(checkpoint, manifest);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardFileWriter>>
CheckpointDirectory::CreateShardFile(const ShardName& shard,
                                     const ShardFileWriter::Options& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("table", shard.table));
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(shard.checkpoint));
  ROWHOUSE_RETURN_IF_ERROR(
      MakeLastingDirectory(files_, paths_.Checkpoint(shard.checkpoint)));
  ROWHOUSE_RETURN_IF_ERROR(MakeLastingDirectory(
      files_, paths_.Table(shard.checkpoint, shard.table)));
  ROWHOUSE_RETURN_IF_ERROR(RemoveIfThere(files_, paths_.ShardManifest(shard)));
  return ShardFileWriter::Create(files_, paths_.ShardFile(shard), options);
}

absl::Status CheckpointDirectory::WriteShardManifest(
    std::string_view checkpoint, const ShardManifest& manifest) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("table", manifest.table));
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(checkpoint));
  return WriteWholeFile(files_,
                        paths_.ShardManifest(NameOf(checkpoint, manifest)),
                        ToText(manifest));
}

absl::Status CheckpointDirectory::RemoveShard(const ShardName& shard) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("table", shard.table));
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(shard.checkpoint));
  ROWHOUSE_RETURN_IF_ERROR(RemoveIfThere(files_, paths_.ShardManifest(shard)));
  ROWHOUSE_RETURN_IF_ERROR(RemoveIfThere(files_, paths_.ShardFile(shard)));
  return absl::OkStatus();
}

absl::Status CheckpointDirectory::WriteTrainerState(std::string_view checkpoint,
                                                    int64_t rank,
                                                    std::string_view state) {
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(checkpoint));
  ROWHOUSE_RETURN_IF_ERROR(
      MakeLastingDirectory(files_, paths_.Checkpoint(checkpoint)));
  ROWHOUSE_RETURN_IF_ERROR(
      MakeLastingDirectory(files_, paths_.Trainers(checkpoint)));
  const std::string manifest = paths_.TrainerStateManifest(checkpoint, rank);
  ROWHOUSE_RETURN_IF_ERROR(RemoveIfThere(files_, manifest));
  ROWHOUSE_RETURN_IF_ERROR(
      WriteWholeFile(files_, paths_.TrainerState(checkpoint, rank), state));
  return WriteWholeFile(
      files_, manifest,
      ToText(TrainerStateEntry{rank, static_cast<int64_t>(state.size()),
                               ChecksumOf(state)}));
}

absl::Status CheckpointDirectory::ForgetTrainerStates(
    std::string_view checkpoint) {
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(checkpoint));
  const absl::StatusOr<std::vector<DirectoryEntry>> entries =
      files_.List(paths_.Trainers(checkpoint));
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    const auto rank = ParseTrainerStateManifestName(entry.name);
    if (!rank.has_value()) continue;
    ROWHOUSE_RETURN_IF_ERROR(
        RemoveLasting(files_, paths_.TrainerStateManifest(checkpoint, *rank)));
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
