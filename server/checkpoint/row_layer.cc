#include "server/checkpoint/row_layer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/file_errors.h"

namespace rowhouse::server {
namespace {

int64_t MostBlockRows(const LoadedTable& table) {
  int64_t most = 0;
  for (const ShardManifest& shard : table.shards) {
    most =
        std::max(most, std::min(shard.file.block_rows, shard.file.row_count));
  }
  return most;
}

int64_t EndOf(const ShardManifest& shard) {
  return shard.first_row_id + shard.row_count;
}

}  // namespace

RowLayer::RowLayer(const CheckpointDirectory& directory, std::string checkpoint,
                   LoadedTable table)
    : directory_(directory),
      checkpoint_(std::move(checkpoint)),
      table_(std::move(table)),
      buffer_(table_.columns(), MostBlockRows(table_)) {}

size_t RowLayer::ShardOf(int64_t row_id) const {
  const auto shard = std::partition_point(
      table_.shards.begin(), table_.shards.end(),
      [&](const ShardManifest& s) { return EndOf(s) <= row_id; });
  return static_cast<size_t>(shard - table_.shards.begin());
}

int64_t RowLayer::PieceEnd(int64_t first_row_id) const {
  const ShardManifest& shard = table_.shards[ShardOf(first_row_id)];
  const int64_t rows = shard.file.block_rows;
  const int64_t block = (first_row_id - shard.first_row_id) / rows;
  return std::min(EndOf(shard), shard.first_row_id + (block + 1) * rows);
}

absl::Status RowLayer::Read(int64_t first_row_id, int64_t row_count,
                            std::span<const std::span<std::byte>> columns) {
  return table_.entry.base.has_value()
             ? ReadChanged(first_row_id, row_count, columns)
             : ReadAll(first_row_id, row_count, columns);
}

absl::Status RowLayer::ReadAll(int64_t first_row_id, int64_t row_count,
                               std::span<const std::span<std::byte>> columns) {
  const int64_t end = first_row_id + row_count;
  for (int64_t row = first_row_id; row < end;) {
    const int64_t piece_end = std::min(end, PieceEnd(row));
    const size_t shard = ShardOf(row);
    ROWHOUSE_RETURN_IF_ERROR(OpenShard(shard));
    ROWHOUSE_RETURN_IF_ERROR(ReadRun({row - table_.shards[shard].first_row_id,
                                      piece_end - row, row - first_row_id},
                                     columns));
    row = piece_end;
  }
  return absl::OkStatus();
}

absl::Status RowLayer::ReadChanged(
    int64_t first_row_id, int64_t row_count,
    std::span<const std::span<std::byte>> columns) {
  const int64_t end = first_row_id + row_count;
  for (size_t shard = ShardOf(first_row_id);
       shard < table_.shards.size() && table_.shards[shard].first_row_id < end;
       ++shard) {
    const ShardFileShape& file = table_.shards[shard].file;
    if (file.row_count == 0) continue;
    ROWHOUSE_RETURN_IF_ERROR(OpenShard(shard));
    const auto place_of = [&](int64_t row_id) {
      return std::lower_bound(ids_.begin(), ids_.end(), row_id) - ids_.begin();
    };
    const int64_t places_end = place_of(end);
    for (int64_t place = place_of(first_row_id); place < places_end;) {
      // Ids that follow each other, within a block.
      const int64_t most =
          std::min(places_end, (place / file.block_rows + 1) * file.block_rows);
      const int64_t id = ids_[static_cast<size_t>(place)];
      int64_t count = 1;
      while (place + count < most &&
             ids_[static_cast<size_t>(place + count)] == id + count) {
        ++count;
      }
      ROWHOUSE_RETURN_IF_ERROR(
          ReadRun({place, count, id - first_row_id}, columns));
      place += count;
    }
  }
  return absl::OkStatus();
}

absl::Status RowLayer::OpenShard(size_t shard) {
  if (shard_ == shard) return absl::OkStatus();
  const ShardManifest& manifest = table_.shards[shard];
  shard_.reset();
  block_.reset();
  ROWHOUSE_ASSIGN_OR_RETURN(
      reader_,
      ShardFileReader::Open(directory_.files(),
                            directory_.paths().ShardFile(
                                {checkpoint_, manifest.table,
                                 manifest.shard_index, manifest.shard_count}),
                            manifest.file, manifest.summary));
  if (manifest.base.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(ReadIds(manifest));
  }
  shard_ = shard;
  return absl::OkStatus();
}

absl::Status RowLayer::ReadIds(const ShardManifest& manifest) {
  const size_t side = *reader_->FindSide(kRowIds);
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                            reader_->ReadSide(side));
  ids_.resize(bytes.size() / sizeof(int64_t));
  std::memcpy(ids_.data(), bytes.data(), bytes.size());
  int64_t least = manifest.first_row_id;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] < least || ids_[i] >= EndOf(manifest)) {
      return DamagedError(
          reader_->path(),
          reader_->SideOffset(side) + static_cast<int64_t>(i * sizeof(int64_t)),
          absl::StrCat("row id ", ids_[i], "; it must be in [", least, ", ",
                       EndOf(manifest), ")"));
    }
    least = ids_[i] + 1;
  }
  return absl::OkStatus();
}

absl::Status RowLayer::ReadRun(const Run& run,
                               std::span<const std::span<std::byte>> columns) {
  const ShardFileShape& file = table_.shards[*shard_].file;
  const int64_t block = run.place / file.block_rows;
  const int64_t block_rows = BlockRowCount(file, block);
  if (run.row_count == block_rows && block_ != block) {
    std::vector<std::span<std::byte>> to;
    for (size_t i = 0; i < columns.size(); ++i) {
      to.push_back(RowsOf(columns[i], file.columns[i], run.to, block_rows));
    }
    return ReadBlock(block, to);
  }
  const auto kept = buffer_.First(block_rows);
  if (block_ != block) {
    block_.reset();
    ROWHOUSE_RETURN_IF_ERROR(ReadBlock(block, kept));
    block_ = block;
  }
  const int64_t first = run.place - block * file.block_rows;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto from = RowsOf(kept[i], file.columns[i], first, run.row_count);
    const auto to = RowsOf(columns[i], file.columns[i], run.to, run.row_count);
    std::memcpy(to.data(), from.data(), from.size());
  }
  return absl::OkStatus();
}

absl::Status RowLayer::ReadBlock(
    int64_t block, std::span<const std::span<std::byte>> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    ROWHOUSE_RETURN_IF_ERROR(reader_->ReadBlock(i, block, columns[i]));
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
