#include "tests/server/checkpoint/sample.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/row_buffer.h"

namespace rowhouse::server {
namespace {

using testing::Random;

std::string RandomBytes(int64_t count, Random& random) {
  std::string bytes(static_cast<size_t>(count), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Bits());
  return bytes;
}

std::span<const std::byte> BytesOf(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

// The rows of a column that a shard saves, by place.
std::string Gather(const SampleTable& table, size_t column,
                   const std::vector<int64_t>& ids) {
  const auto row_bytes = static_cast<size_t>(table.columns[column].row_bytes);
  std::string rows;
  for (const int64_t id : ids) {
    rows.append(table.bytes[column], static_cast<size_t>(id) * row_bytes,
                row_bytes);
  }
  return rows;
}

// As a shard does: some rows go ahead, are read back, and complete their block.
absl::Status WriteColumn(ShardFileWriter& writer, size_t column,
                         const std::string& rows, Random& random) {
  const ShardFileShape& shape = writer.shape();
  const int64_t row_bytes = shape.columns[column].row_bytes;
  const auto part = [&](int64_t row, int64_t count) {
    return BytesOf(rows).subspan(static_cast<size_t>(row * row_bytes),
                                 static_cast<size_t>(count * row_bytes));
  };
  for (int64_t block = 0; block < BlockCount(shape); ++block) {
    const int64_t first = block * shape.block_rows;
    const int64_t count = BlockRowCount(shape, block);
    std::vector<std::byte> content(part(first, count).begin(),
                                   part(first, count).end());
    if (random.Chance(0.5)) {
      const int64_t ahead = random.Integer(first, first + count - 1);
      ROWHOUSE_RETURN_IF_ERROR(
          writer.WriteAhead(column, ahead, part(ahead, 1)));
      ROWHOUSE_RETURN_IF_ERROR(writer.ReadBack(
          column, ahead,
          RowsOf(content, shape.columns[column], ahead - first, 1)));
    }
    ROWHOUSE_RETURN_IF_ERROR(writer.WriteBlock(column, block, content));
  }
  return absl::OkStatus();
}

}  // namespace

SampleTable RandomTable(const std::string& name, int64_t row_count,
                        Random& random) {
  SampleTable table = {name, row_count, random.Integer(1, 100), {}, {}};
  const std::vector<std::string> dtypes = {"BF16", "F16", "F32", "I32"};
  const int64_t column_count = random.Integer(1, 4);
  for (int64_t i = 0; i < column_count; ++i) {
    const std::string& dtype =
        dtypes[static_cast<size_t>(random.Integer(0, 3))];
    const int64_t width = random.Integer(0, 5);
    const int64_t row_bytes = ElementBytes(dtype) * std::max<int64_t>(width, 1);
    table.columns.push_back(
        {absl::StrCat("column_", i), dtype, width, row_bytes});
    table.bytes.push_back(RandomBytes(row_count * row_bytes, random));
  }
  return table;
}

SampleTable NextEvent(const SampleTable& table, double share, Random& random,
                      std::vector<int64_t>& changed) {
  SampleTable next = table;
  ++next.event;
  for (int64_t row = 0; row < table.row_count; ++row) {
    if (!random.Chance(share)) continue;
    changed.push_back(row);
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const int64_t row_bytes = table.columns[i].row_bytes;
      next.bytes[i].replace(static_cast<size_t>(row * row_bytes),
                            static_cast<size_t>(row_bytes),
                            RandomBytes(row_bytes, random));
    }
  }
  return next;
}

std::vector<int64_t> RandomBounds(int64_t row_count, Random& random) {
  std::vector<int64_t> bounds = {0, row_count};
  const int64_t cuts = random.Integer(0, 3);
  for (int64_t i = 0; i < cuts; ++i) {
    bounds.push_back(random.Integer(0, row_count));
  }
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

absl::Status WriteSample(CheckpointDirectory& directory,
                         const std::string& checkpoint,
                         const SampleTable& table, const SampleWriting& writing,
                         Random& random) {
  const auto shard_count = static_cast<int64_t>(writing.bounds.size()) - 1;
  const std::string history = RandomBytes(table.event * 4, random);
  for (int64_t index = 0; index < shard_count; ++index) {
    const int64_t first = writing.bounds[static_cast<size_t>(index)];
    const int64_t end = writing.bounds[static_cast<size_t>(index) + 1];
    std::vector<int64_t> ids;
    for (int64_t id = first; !writing.base.has_value() && id < end; ++id) {
      ids.push_back(id);
    }
    for (const int64_t id : writing.changed) {
      if (id >= first && id < end) ids.push_back(id);
    }
    ShardManifest manifest;
    manifest.table = table.name;
    manifest.shard_index = index;
    manifest.shard_count = shard_count;
    manifest.first_row_id = first;
    manifest.row_count = end - first;
    manifest.event = table.event;
    manifest.spec = {{"row_count", table.row_count}, {"bound", 0.1}};
    manifest.trainer_counts = {{1, 2}, {7, 3}};
    manifest.base = writing.base;
    const auto saved = static_cast<int64_t>(ids.size());
    ShardFileWriter::Options options = {
        saved, writing.block_rows, table.columns, {}, MetadataOf(manifest)};
    options.sides.push_back(
        {{"beta2_history", "F32", {table.event}}, BytesOf(history)});
    if (writing.base.has_value()) {
      options.sides.push_back({{std::string(kRowIds), "I64", {saved}},
                               std::as_bytes(std::span(ids))});
    }
    ROWHOUSE_ASSIGN_OR_RETURN(
        const std::unique_ptr<ShardFileWriter> writer,
        directory.CreateShardFile({checkpoint, table.name, index, shard_count},
                                  options));
    for (size_t i = 0; i < table.columns.size(); ++i) {
      ROWHOUSE_RETURN_IF_ERROR(
          WriteColumn(*writer, i, Gather(table, i, ids), random));
    }
    manifest.file = writer->shape();
    ROWHOUSE_ASSIGN_OR_RETURN(manifest.summary, writer->Finish());
    ROWHOUSE_RETURN_IF_ERROR(
        directory.WriteShardManifest(checkpoint, manifest));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> PublishSample(CheckpointDirectory& directory,
                                       const std::string& checkpoint,
                                       const std::vector<SampleTable>& tables,
                                       absl::Time created_time,
                                       const std::string& base,
                                       int64_t trainer_state_count) {
  Publication publication;
  publication.checkpoint = checkpoint;
  publication.step = 5;
  publication.created_time = created_time;
  publication.base = base;
  publication.trainer_state_count = trainer_state_count;
  for (const SampleTable& table : tables) {
    publication.tables.push_back({table.name, table.event});
  }
  return directory.Publish(publication);
}

absl::StatusOr<SampleTable> ReadSample(CheckpointDirectory& directory,
                                       const std::string& checkpoint,
                                       const std::string& table) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<LoadedCheckpoint> chain,
                            directory.LoadChain(checkpoint));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> source,
                            RowSource::Open(directory, chain, table));
  const LoadedTable& loaded = source->table();
  SampleTable sample = {
      table, loaded.row_count(), loaded.entry.event, loaded.columns(), {}};
  RowBuffer buffer(sample.columns, sample.row_count);
  const auto rows = buffer.First(sample.row_count);
  ROWHOUSE_RETURN_IF_ERROR(source->Read(0, sample.row_count, rows));
  for (const std::span<std::byte> column : rows) {
    sample.bytes.emplace_back(reinterpret_cast<const char*>(column.data()),
                              column.size());
  }
  return sample;
}

std::string SampleState(int64_t rank) {
  return absl::StrCat("state of trainer ", rank, std::string(100, '.'));
}

}  // namespace rowhouse::server
