#include "server/checkpoint/shard_file_reader.h"

#include <cassert>
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
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"

namespace rowhouse::server {
namespace {

constexpr char kNotWhatWasWritten[] = " is not what was written";

}  // namespace

ShardFileReader::ShardFileReader(std::string path, ShardFileShape shape,
                                 ShardFileSummary summary)
    : path_(std::move(path)),
      shape_(std::move(shape)),
      summary_(std::move(summary)),
      layout_(LayoutOf(shape_)),
      data_offset_(summary_.size_bytes - layout_.data_bytes) {}

absl::StatusOr<std::unique_ptr<ShardFileReader>> ShardFileReader::Open(
    Files& files, const std::string& path, const ShardFileShape& shape,
    const ShardFileSummary& summary) {
  std::unique_ptr<ShardFileReader> reader(
      new ShardFileReader(path, shape, summary));
  const absl::Status opened = reader->OpenFiles(files);
  if (absl::IsNotFound(opened)) {
    return DamagedError(path, 0, "the file is missing");
  }
  ROWHOUSE_RETURN_IF_ERROR(opened);
  ROWHOUSE_RETURN_IF_ERROR(reader->CheckStart());
  return reader;
}

absl::Status ShardFileReader::OpenFiles(Files& files) {
  ROWHOUSE_ASSIGN_OR_RETURN(file_, files.Open(path_));
  for (size_t i = 0; i < shape_.columns.size(); ++i) {
    ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(path_));
    column_files_.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status ShardFileReader::CheckStart() {
  ROWHOUSE_ASSIGN_OR_RETURN(const int64_t size_bytes, file_->SizeBytes());
  if (size_bytes < summary_.size_bytes) {
    return DamagedError(path_, size_bytes,
                        absl::StrCat("the file ends here; wanted are ",
                                     summary_.size_bytes, " bytes"));
  }
  if (size_bytes > summary_.size_bytes) {
    return DamagedError(
        path_, summary_.size_bytes,
        absl::StrCat("the file goes on for ", size_bytes - summary_.size_bytes,
                     " bytes more"));
  }
  std::vector<std::byte> header(static_cast<size_t>(data_offset_));
  ROWHOUSE_RETURN_IF_ERROR(file_->ReadAt(0, header));
  if (ChecksumOf(header) != summary_.header_checksum) {
    return DamagedError(path_, 0,
                        absl::StrCat("the header", kNotWhatWasWritten));
  }
  return absl::OkStatus();
}

int64_t ShardFileReader::OffsetOf(size_t column, int64_t block) const {
  return data_offset_ + layout_.column_offsets[column] +
         block * shape_.block_rows * shape_.columns[column].row_bytes;
}

absl::Status ShardFileReader::ReadBlock(size_t column, int64_t block,
                                        std::span<std::byte> rows) {
  assert(static_cast<int64_t>(rows.size()) ==
         BlockRowCount(shape_, block) * shape_.columns[column].row_bytes);
  const int64_t offset = OffsetOf(column, block);
  ROWHOUSE_RETURN_IF_ERROR(column_files_[column]->ReadAt(offset, rows));
  if (ChecksumOf(rows) !=
      summary_.block_checksums[column][static_cast<size_t>(block)]) {
    return DamagedError(
        path_, offset,
        absl::StrCat("block ", block, " of column ",
                     shape_.columns[column].name, kNotWhatWasWritten));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> ShardFileReader::ReadSide(size_t side) {
  std::vector<std::byte> bytes(static_cast<size_t>(layout_.side_bytes[side]));
  const int64_t offset = SideOffset(side);
  ROWHOUSE_RETURN_IF_ERROR(file_->ReadAt(offset, bytes));
  if (ChecksumOf(bytes) != summary_.side_checksums[side]) {
    return DamagedError(
        path_, offset,
        absl::StrCat("tensor ", shape_.sides[side].name, kNotWhatWasWritten));
  }
  return bytes;
}

std::optional<size_t> ShardFileReader::FindSide(std::string_view name) const {
  for (size_t i = 0; i < shape_.sides.size(); ++i) {
    if (shape_.sides[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace rowhouse::server
