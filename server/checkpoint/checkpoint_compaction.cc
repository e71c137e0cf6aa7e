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
#include "absl/time/time.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/progress_count.h"
#include "server/checkpoint/row_buffer.h"
#include "server/checkpoint/row_source.h"
#include "server/checkpoint/shard_file_writer.h"

namespace rowhouse::server {
namespace {

using Chain = std::vector<LoadedCheckpoint>;

// What a shard is once all its rows are in one file; its checksums are not
// known yet.
ShardManifest WholeOf(const ShardManifest& shard) {
  ShardManifest whole = shard;
  whole.base.reset();
  whole.file.row_count = shard.row_count;
  std::erase_if(whole.file.sides, [](const SideTensorSpec& side) {
    return side.name == kRowIds;
  });
  whole.statistics = {};
  return whole;
}

absl::Status CopyRows(RowSource& source, const ShardManifest& shard,
                      ShardFileWriter& writer, ProgressCount& progress) {
  const ShardFileShape& file = shard.file;
  RowBuffer buffer(file.columns, std::min(file.block_rows, file.row_count));
  for (int64_t block = 0; block < BlockCount(file); ++block) {
    const int64_t count = BlockRowCount(file, block);
    const auto rows = buffer.First(count);
    ROWHOUSE_RETURN_IF_ERROR(
        source.Read(shard.first_row_id + block * file.block_rows, count, rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      ROWHOUSE_RETURN_IF_ERROR(writer.WriteBlock(i, block, rows[i]));
    }
    ROWHOUSE_RETURN_IF_ERROR(
        progress.Add(count * RowBytesOf(shard.file.columns)));
  }
  return absl::OkStatus();
}

absl::Status CompactShard(CheckpointDirectory& directory,
                          const std::string& compact_name, RowSource& source,
                          size_t index, ProgressCount& progress) {
  ShardManifest shard = WholeOf(source.table().shards[index]);
  ShardFileWriter::Options options = {shard.file.row_count,
                                      shard.file.block_rows,
                                      shard.file.columns,
                                      {},
                                      MetadataOf(shard)};
  std::vector<std::vector<std::byte>> sides;
  for (const SideTensorSpec& side : shard.file.sides) {
    ROWHOUSE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                              source.ReadSide(index, side.name));
    sides.push_back(std::move(bytes));
    options.sides.push_back({side, sides.back()});
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardFileWriter> writer,
      directory.CreateShardFile(
          {compact_name, shard.table, shard.shard_index, shard.shard_count},
          options));
  ROWHOUSE_RETURN_IF_ERROR(CopyRows(source, shard, *writer, progress));
  ROWHOUSE_ASSIGN_OR_RETURN(shard.summary, writer->Finish());
  shard.statistics.byte_count = shard.summary.size_bytes;
  return directory.WriteShardManifest(compact_name, shard);
}

absl::StatusOr<Manifest> CompactChain(CheckpointDirectory& directory,
                                      const Chain& chain,
                                      const std::string& compact_name,
                                      absl::Time created_time,
                                      ProgressCount& progress) {
  const LoadedCheckpoint& newest = chain.back();
  const Manifest& manifest = newest.manifest;
  Publication publication;
  publication.checkpoint = compact_name;
  publication.step = manifest.step;
  publication.created_time = created_time;
  publication.trainer_state_count =
      static_cast<int64_t>(manifest.trainer_states.size());
  for (const LoadedTable& table : newest.tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const std::unique_ptr<RowSource> source,
        RowSource::Open(directory, chain, table.entry.table));
    for (size_t i = 0; i < table.shards.size(); ++i) {
      ROWHOUSE_RETURN_IF_ERROR(
          CompactShard(directory, compact_name, *source, i, progress));
    }
    publication.tables.push_back({table.entry.table, table.entry.event,
                                  static_cast<int64_t>(table.shards.size())});
  }
  for (const TrainerStateEntry& state : manifest.trainer_states) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const std::string bytes,
        directory.ReadTrainerState(manifest.checkpoint, state.rank));
    ROWHOUSE_RETURN_IF_ERROR(
        directory.WriteTrainerState(compact_name, state.rank, bytes));
  }
  return directory.Publish(publication);
}

}  // namespace

absl::StatusOr<Manifest> CheckpointDirectory::Compact(
    std::string_view checkpoint, std::string_view compact_name,
    absl::Time created_time, FileProgress progress) {
  ROWHOUSE_RETURN_IF_ERROR(CheckNotWhole(compact_name));
  ROWHOUSE_ASSIGN_OR_RETURN(const Chain chain, LoadChain(checkpoint));
  int64_t total_bytes = 0;
  for (const LoadedTable& table : chain.back().tables) {
    for (const ShardManifest& shard : table.shards) {
      total_bytes += shard.row_count * RowBytesOf(shard.file.columns);
    }
  }
  ProgressCount count(total_bytes, progress);
  absl::StatusOr<Manifest> manifest = CompactChain(
      *this, chain, std::string(compact_name), created_time, count);
  // That it failed says more than that what it left cannot be removed. What is
  // whole is another's.
  if (!manifest.ok() && CheckNotWhole(compact_name).ok()) {
    RemoveCheckpoint(compact_name).IgnoreError();
  }
  return manifest;
}

}  // namespace rowhouse::server
