#include "server/shard/staged_part.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {

absl::StatusOr<StagedPart> StagedPart::Allocate(kernels::Backend& backend,
                                                int64_t row_count,
                                                int64_t row_bytes) {
  StagedPart part;
  if (row_count == 0) return part;
  constexpr int64_t kAlignment = 64;
  const int64_t slot_bytes = row_count * static_cast<int64_t>(sizeof(int64_t));
  part.rows_offset_ = (slot_bytes + kAlignment - 1) / kAlignment * kAlignment;
  ROWHOUSE_ASSIGN_OR_RETURN(
      part.memory_,
      backend.AllocateUninitialized(part.rows_offset_ + row_count * row_bytes));
  part.row_count_ = row_count;
  return part;
}

}  // namespace rowhouse::server
