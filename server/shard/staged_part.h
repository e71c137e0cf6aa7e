#ifndef ROWHOUSE_SERVER_SHARD_STAGED_PART_H_
#define ROWHOUSE_SERVER_SHARD_STAGED_PART_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/row_table.h"

namespace rowhouse::server {

/// The slots and gradient rows of one part, in one piece of backend memory.
class StagedPart {
 public:
  /// An empty part.
  StagedPart() = default;

  /// Room for `row_count` rows, not filled.
  ///
  /// Errors: the backend's, for want of memory.
  static absl::StatusOr<StagedPart> Allocate(kernels::Backend& backend,
                                             int64_t row_count,
                                             int64_t row_bytes);

  int64_t row_count() const { return row_count_; }
  int64_t* slots() const { return memory_.as<int64_t>(); }
  char* rows() const {
    return row_count_ == 0 ? nullptr : memory_.as<char>() + rows_offset_;
  }
  kernels::GradientPart view() const { return {slots(), rows(), row_count_}; }

 private:
  kernels::Buffer memory_;
  int64_t row_count_ = 0;
  int64_t rows_offset_ = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_STAGED_PART_H_
