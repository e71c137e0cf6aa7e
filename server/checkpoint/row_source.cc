#include "server/checkpoint/row_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/row_layer.h"
#include "server/checkpoint/shard_file_reader.h"

namespace rowhouse::server {

RowSource::RowSource(LoadedTable table, std::string checkpoint,
                     const CheckpointDirectory& directory,
                     std::vector<std::unique_ptr<RowLayer>> layers)
    : table_(std::move(table)),
      checkpoint_(std::move(checkpoint)),
      directory_(directory),
      layers_(std::move(layers)) {}

RowSource::~RowSource() = default;

absl::StatusOr<std::unique_ptr<RowSource>> RowSource::Open(
    const CheckpointDirectory& directory,
    const std::vector<LoadedCheckpoint>& chain, std::string_view table) {
  const std::string& name = chain.back().manifest.checkpoint;
  const LoadedTable* newest = chain.back().Find(table);
  if (newest == nullptr) {
    return NoSuchCheckpointError(
        absl::StrCat("table ", std::string(table), " in checkpoint ", name),
        directory.paths().Table(name, table));
  }
  std::vector<std::unique_ptr<RowLayer>> layers;
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    const LoadedTable* loaded = at->Find(table);
    layers.push_back(std::make_unique<RowLayer>(
        directory, at->manifest.checkpoint, *loaded));
    if (!loaded->entry.base.has_value()) break;
  }
  std::reverse(layers.begin(), layers.end());
  return std::unique_ptr<RowSource>(
      new RowSource(*newest, name, directory, std::move(layers)));
}

absl::StatusOr<std::vector<std::byte>> RowSource::ReadSide(
    size_t shard, std::string_view name) {
  const ShardManifest& manifest = table_.shards[shard];
  const std::string path = directory_.paths().ShardFile(
      {checkpoint_, manifest.table, manifest.shard_index,
       manifest.shard_count});
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardFileReader> reader,
      ShardFileReader::Open(directory_.files(), path, manifest.file,
                            manifest.summary));
  const std::optional<size_t> side = reader->FindSide(name);
  if (!side.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(path, " has no tensor ", std::string(name)));
  }
  return reader->ReadSide(*side);
}

int64_t RowSource::PieceEnd(int64_t first_row_id) const {
  return layers_.front()->PieceEnd(first_row_id);
}

absl::Status RowSource::Read(int64_t first_row_id, int64_t row_count,
                             std::span<const std::span<std::byte>> columns) {
  for (const std::unique_ptr<RowLayer>& layer : layers_) {
    ROWHOUSE_RETURN_IF_ERROR(layer->Read(first_row_id, row_count, columns));
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
