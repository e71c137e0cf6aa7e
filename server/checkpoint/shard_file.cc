#include "server/checkpoint/shard_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian, as memory");

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderAlignment = 4096;
constexpr std::array<std::pair<std::string_view, int64_t>, 5> kDtypes = {
    {{"I64", 8}, {"F32", 4}, {"I32", 4}, {"BF16", 2}, {"F16", 2}}};

// No sum of such sizes, of however many tensors, passes what a file can have.
constexpr int64_t kMostTensorBytes = int64_t{1} << 50;

// The product of `factors`, or nothing where one is negative or it is more than
// a tensor may have.
std::optional<int64_t> Product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product) ||
        product > kMostTensorBytes) {
      return std::nullopt;
    }
  }
  return product;
}

std::vector<int64_t> ShapeOf(const ColumnSpec& column, int64_t row_count) {
  if (column.width == 0) return {row_count};
  return {row_count, column.width};
}

// A tensor as the header has it.
struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// In the order of the file, with the place in `layout` that each offset is for.
std::vector<std::pair<Tensor, int64_t*>> TensorsOf(const ShardFileShape& shape,
                                                   ShardFileLayout& layout) {
  std::vector<std::pair<Tensor, int64_t*>> tensors;
  layout.side_offsets.resize(shape.sides.size());
  layout.side_bytes.resize(shape.sides.size());
  layout.column_offsets.resize(shape.columns.size());
  for (size_t i = 0; i < shape.sides.size(); ++i) {
    const SideTensorSpec& side = shape.sides[i];
    int64_t bytes = ElementBytes(side.dtype);
    for (const int64_t extent : side.shape) bytes *= extent;
    layout.side_bytes[i] = bytes;
    tensors.emplace_back(Tensor{side.name, side.dtype, side.shape, 0, bytes},
                         &layout.side_offsets[i]);
  }
  for (size_t i = 0; i < shape.columns.size(); ++i) {
    const ColumnSpec& column = shape.columns[i];
    tensors.emplace_back(
        Tensor{column.name, column.dtype, ShapeOf(column, shape.row_count), 0,
               shape.row_count * column.row_bytes},
        &layout.column_offsets[i]);
  }
  std::stable_sort(
      tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
        return ElementBytes(a.first.dtype) > ElementBytes(b.first.dtype);
      });
  for (auto& [tensor, offset] : tensors) {
    tensor.offset = layout.data_bytes;
    *offset = layout.data_bytes;
    layout.data_bytes += tensor.bytes;
  }
  return tensors;
}

absl::Status CheckColumn(const ColumnSpec& column, int64_t row_count) {
  const std::optional<int64_t> row_bytes =
      Product({ElementBytes(column.dtype), std::max<int64_t>(column.width, 1)});
  if (column.width < 0 || row_bytes != column.row_bytes || row_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", column.name, " has ", column.row_bytes, " bytes a row; ",
        column.width, " of ", column.dtype, " take others"));
  }
  if (!Product({*row_bytes, row_count}).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("column ", column.name, " is too large"));
  }
  return absl::OkStatus();
}

absl::Status CheckSide(const SideTensorSpec& side) {
  std::optional<int64_t> bytes = ElementBytes(side.dtype);
  for (const int64_t extent : side.shape) {
    if (bytes.has_value()) bytes = Product({*bytes, extent});
  }
  if (ElementBytes(side.dtype) != 0 && bytes.has_value()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", side.name, " has no dtype or shape that a file can have"));
}

}  // namespace

int64_t ElementBytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

absl::Status CheckShape(const ShardFileShape& shape) {
  if (shape.row_count < 0 || shape.block_rows < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a file of ", shape.row_count, " rows in blocks of ",
                     shape.block_rows, "; there must be at least 0 and 1"));
  }
  std::set<std::string> names = {"__metadata__"};
  for (const ColumnSpec& column : shape.columns) {
    const absl::Status status = CheckColumn(column, shape.row_count);
    if (!status.ok()) return status;
    if (!names.insert(column.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are named ", column.name));
    }
  }
  for (const SideTensorSpec& side : shape.sides) {
    const absl::Status status = CheckSide(side);
    if (!status.ok()) return status;
    if (!names.insert(side.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are named ", side.name));
    }
  }
  return absl::OkStatus();
}

int64_t RowBytesOf(const std::vector<ColumnSpec>& columns) {
  int64_t bytes = 0;
  for (const ColumnSpec& column : columns) bytes += column.row_bytes;
  return bytes;
}

int64_t BlockCount(const ShardFileShape& shape) {
  return shape.row_count / shape.block_rows +
         (shape.row_count % shape.block_rows != 0 ? 1 : 0);
}

int64_t BlockRowCount(const ShardFileShape& shape, int64_t block) {
  return std::min(shape.block_rows, shape.row_count - block * shape.block_rows);
}

ShardFileLayout LayoutOf(const ShardFileShape& shape) {
  ShardFileLayout layout;
  TensorsOf(shape, layout);
  return layout;
}

std::string HeaderOf(const ShardFileShape& shape,
                     const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json;
  if (!metadata.empty()) json["__metadata__"] = metadata;
  ShardFileLayout layout;
  for (const auto& [tensor, offset] : TensorsOf(shape, layout)) {
    json[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {tensor.offset, tensor.offset + tensor.bytes}}};
  }
  std::string text = json.dump();
  const size_t used = kLengthBytes + text.size();
  const size_t whole =
      (used + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.append(whole - used, ' ');
  std::string header(kLengthBytes, '\0');
  const uint64_t length = text.size();
  std::memcpy(header.data(), &length, kLengthBytes);
  return header + text;
}

}  // namespace rowhouse::server
