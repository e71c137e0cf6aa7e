#ifndef ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_H_
#define ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace rowhouse::server {

/// One array of a table's rows: a tensor [row_count, width], or [row_count]
/// where `width` is 0, which is one element a row.
struct ColumnSpec {
  std::string name;
  std::string dtype;  ///< "BF16", "F16", "F32", "I32" or "I64".
  int64_t width = 0;
  int64_t row_bytes = 0;  ///< What follows from the others.

  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

/// A tensor that is not of rows, or that is known when the file is begun.
struct SideTensorSpec {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;

  friend bool operator==(const SideTensorSpec&,
                         const SideTensorSpec&) = default;
};

/// In the file of a delta the ids of its rows, I64 [row_count], ascending.
inline constexpr std::string_view kRowIds = "row_ids";

/// What a shard's file is made of. Its columns are written and checked in
/// blocks of `block_rows` rows; the last one may have fewer.
struct ShardFileShape {
  int64_t row_count = 0;
  int64_t block_rows = 1;
  std::vector<ColumnSpec> columns;
  std::vector<SideTensorSpec> sides;

  friend bool operator==(const ShardFileShape&,
                         const ShardFileShape&) = default;
};

/// What makes a file's content known: 64-bit checksums (`checksum.h`) of all
/// its bytes.
struct ShardFileSummary {
  int64_t size_bytes = 0;
  uint64_t header_checksum = 0;  ///< Of all bytes before the first tensor.
  std::vector<uint64_t> side_checksums;
  std::vector<std::vector<uint64_t>> block_checksums;  ///< [column][block]

  friend bool operator==(const ShardFileSummary&,
                         const ShardFileSummary&) = default;
};

/// Bytes of an element, or 0 for a name that is none of those above.
int64_t ElementBytes(std::string_view dtype);

/// Errors:
///   kInvalidArgument  a count or a dtype is out of range, a column's
///                     `row_bytes` is not what its dtype and width take, or
///                     two tensors have one name. Says what.
absl::Status CheckShape(const ShardFileShape& shape);

/// Bytes of a row in all columns.
int64_t RowBytesOf(const std::vector<ColumnSpec>& columns);

int64_t BlockCount(const ShardFileShape& shape);

/// Rows of a block.
int64_t BlockRowCount(const ShardFileShape& shape, int64_t block);

/// Where all is, in bytes. The header comes first; then tensors, those of wider
/// elements first, so that each is aligned to its elements; side tensors before
/// columns.
struct ShardFileLayout {
  std::vector<int64_t> side_offsets;  ///< From the start of the data.
  std::vector<int64_t> side_bytes;
  std::vector<int64_t> column_offsets;
  int64_t data_bytes = 0;
};

/// REQUIRES: `shape` passes `CheckShape`.
ShardFileLayout LayoutOf(const ShardFileShape& shape);

/// All bytes before the data, as safetensors has them; a multiple of 4,096.
std::string HeaderOf(const ShardFileShape& shape,
                     const std::map<std::string, std::string>& metadata);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_H_
