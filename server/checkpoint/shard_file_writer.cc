#include "server/checkpoint/shard_file_writer.h"

#include <algorithm>
#include <cassert>
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
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"

namespace rowhouse::server {
namespace {

absl::StatusOr<ShardFileShape> ShapeOf(
    const ShardFileWriter::Options& options) {
  ShardFileShape shape = {
      options.row_count, options.block_rows, options.columns, {}};
  for (const SideTensor& side : options.sides) {
    shape.sides.push_back(side.spec);
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckShape(shape));
  const ShardFileLayout layout = LayoutOf(shape);
  for (size_t i = 0; i < options.sides.size(); ++i) {
    const auto found = static_cast<int64_t>(options.sides[i].bytes.size());
    if (found == layout.side_bytes[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", shape.sides[i].name, " has ", found,
                     " bytes; its shape takes ", layout.side_bytes[i]));
  }
  return shape;
}

}  // namespace

ShardFileWriter::ShardFileWriter(ShardFileShape shape,
                                 std::unique_ptr<PendingFile> pending)
    : shape_(std::move(shape)),
      layout_(LayoutOf(shape_)),
      pending_(std::move(pending)) {
  const auto blocks = static_cast<size_t>(BlockCount(shape_));
  written_.assign(shape_.columns.size(), std::vector<char>(blocks));
  summary_.block_checksums.assign(shape_.columns.size(),
                                  std::vector<uint64_t>(blocks));
}

absl::StatusOr<std::unique_ptr<ShardFileWriter>> ShardFileWriter::Create(
    Files& files, const std::string& path, const Options& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(ShardFileShape shape, ShapeOf(options));
  ROWHOUSE_ASSIGN_OR_RETURN(const int64_t free_bytes,
                            files.FreeBytes(DirectoryOf(path)));
  const int64_t wanted = LayoutOf(shape).data_bytes;
  if (free_bytes < wanted) {
    return NotWritableError(absl::StatusCode::kResourceExhausted, path,
                            absl::StrCat("the disk has room for ", free_bytes,
                                         " bytes; wanted are ", wanted));
  }
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<PendingFile> pending,
                            PendingFile::Create(files, path));
  std::unique_ptr<ShardFileWriter> writer(
      new ShardFileWriter(std::move(shape), std::move(pending)));
  ROWHOUSE_RETURN_IF_ERROR(writer->WriteStart(options));
  return writer;
}

absl::Status ShardFileWriter::WriteStart(const Options& options) {
  const std::string header = HeaderOf(shape_, options.metadata);
  data_offset_ = static_cast<int64_t>(header.size());
  summary_.size_bytes = data_offset_ + layout_.data_bytes;
  summary_.header_checksum = ChecksumOf(header);
  File& file = pending_->file();
  ROWHOUSE_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(header))));
  for (size_t i = 0; i < options.sides.size(); ++i) {
    summary_.side_checksums.push_back(ChecksumOf(options.sides[i].bytes));
    ROWHOUSE_RETURN_IF_ERROR(file.WriteAt(
        data_offset_ + layout_.side_offsets[i], options.sides[i].bytes));
  }
  return absl::OkStatus();
}

int64_t ShardFileWriter::OffsetOf(size_t column, int64_t row) const {
  return data_offset_ + layout_.column_offsets[column] +
         row * shape_.columns[column].row_bytes;
}

absl::Status ShardFileWriter::WriteAhead(size_t column, int64_t first_row,
                                         std::span<const std::byte> rows) {
  return pending_->file().WriteAt(OffsetOf(column, first_row), rows);
}

absl::Status ShardFileWriter::ReadBack(size_t column, int64_t first_row,
                                       std::span<std::byte> rows) {
  return pending_->file().ReadAt(OffsetOf(column, first_row), rows);
}

absl::Status ShardFileWriter::WriteBlock(size_t column, int64_t block,
                                         std::span<const std::byte> rows) {
  const auto at = static_cast<size_t>(block);
  assert(static_cast<int64_t>(rows.size()) ==
         BlockRowCount(shape_, block) * shape_.columns[column].row_bytes);
  assert(written_[column][at] == 0);
  ROWHOUSE_RETURN_IF_ERROR(pending_->file().WriteAt(
      OffsetOf(column, block * shape_.block_rows), rows));
  summary_.block_checksums[column][at] = ChecksumOf(rows);
  written_[column][at] = 1;
  return absl::OkStatus();
}

absl::StatusOr<ShardFileSummary> ShardFileWriter::Finish() {
  for (size_t i = 0; i < written_.size(); ++i) {
    const auto missing = std::find(written_[i].begin(), written_[i].end(), 0);
    if (missing == written_[i].end()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        pending_->path(), ": block ", missing - written_[i].begin(),
        " of column ", shape_.columns[i].name, " was not written"));
  }
  ROWHOUSE_RETURN_IF_ERROR(pending_->Finish());
  return summary_;
}

}  // namespace rowhouse::server
