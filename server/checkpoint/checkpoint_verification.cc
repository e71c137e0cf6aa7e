#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/progress_count.h"
#include "server/checkpoint/shard_file_reader.h"

namespace rowhouse::server {
namespace {

// In the order of the file, so that the disk need not seek.
absl::Status VerifyShard(const CheckpointDirectory& directory,
                         const std::string& checkpoint,
                         const ShardManifest& shard, ProgressCount& progress) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardFileReader> reader,
      ShardFileReader::Open(
          directory.files(),
          directory.paths().ShardFile(
              {checkpoint, shard.table, shard.shard_index, shard.shard_count}),
          shard.file, shard.summary));
  int64_t left = shard.summary.size_bytes;
  for (size_t side = 0; side < shard.file.sides.size(); ++side) {
    ROWHOUSE_RETURN_IF_ERROR(reader->ReadSide(side).status());
  }
  std::vector<std::byte> rows;
  for (size_t i = 0; i < shard.file.columns.size(); ++i) {
    for (int64_t block = 0; block < BlockCount(shard.file); ++block) {
      const int64_t bytes =
          BlockRowCount(shard.file, block) * shard.file.columns[i].row_bytes;
      rows.resize(std::max(rows.size(), static_cast<size_t>(bytes)));
      ROWHOUSE_RETURN_IF_ERROR(reader->ReadBlock(
          i, block, std::span(rows).first(static_cast<size_t>(bytes))));
      ROWHOUSE_RETURN_IF_ERROR(progress.Add(bytes));
      left -= bytes;
    }
  }
  return progress.Add(left);  // Header and side tensors.
}

}  // namespace

absl::Status CheckpointDirectory::Verify(std::string_view checkpoint,
                                         FileProgress progress) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<LoadedCheckpoint> chain,
                            LoadChain(checkpoint));
  int64_t total_bytes = 0;
  for (const LoadedCheckpoint& loaded : chain) {
    total_bytes += loaded.size_bytes();
  }
  ProgressCount count(total_bytes, progress);
  for (const LoadedCheckpoint& loaded : chain) {
    const std::string& name = loaded.manifest.checkpoint;
    for (const LoadedTable& table : loaded.tables) {
      for (const ShardManifest& shard : table.shards) {
        ROWHOUSE_RETURN_IF_ERROR(VerifyShard(*this, name, shard, count));
      }
    }
    for (const TrainerStateEntry& state : loaded.manifest.trainer_states) {
      ROWHOUSE_RETURN_IF_ERROR(ReadTrainerState(name, state.rank).status());
      ROWHOUSE_RETURN_IF_ERROR(count.Add(state.size_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
