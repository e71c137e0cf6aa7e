#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "server/shard/snapshot.h"

namespace rowhouse::server {
namespace {

const char* SafetensorsName(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kBf16:
      return "BF16";
    case kernels::DType::kFp16:
      return "F16";
    case kernels::DType::kFp32:
      return "F32";
  }
  return "";
}

RowColumn Floats(const char* name, int64_t width) {
  return {name, "F32", width,
          std::max<int64_t>(width, 1) * int64_t{sizeof(float)}};
}

}  // namespace

std::vector<RowColumn> RowColumnsOf(const ShardSpec& spec) {
  std::vector<RowColumn> columns = {
      {"weights", SafetensorsName(spec.row_dtype), spec.dim,
       spec.dim * kernels::SizeOf(spec.row_dtype)}};
  if (!spec.dense.has_value()) {
    columns.push_back({"row_state", "I32", 2, sizeof(kernels::RowState)});
    return columns;
  }
  if (spec.dense->has_master) columns.push_back(Floats("master", spec.dim));
  columns.push_back(Floats("first_moment", spec.dim));
  columns.push_back(Floats("second_moment", spec.dim));
  if (!spec.dense->has_bias) return columns;
  columns.push_back(Floats("bias", 0));
  columns.push_back(Floats("bias_first_moment", 0));
  columns.push_back(Floats("bias_second_moment", 0));
  return columns;
}

int64_t RowBytesOf(std::span<const RowColumn> columns) {
  int64_t bytes = 0;
  for (const RowColumn& column : columns) bytes += column.row_bytes;
  return bytes;
}

}  // namespace rowhouse::server
