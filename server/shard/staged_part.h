#ifndef ROWHOUSE_SERVER_SHARD_STAGED_PART_H_
#define ROWHOUSE_SERVER_SHARD_STAGED_PART_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/row_table.h"
#include "server/shard/head_operands.h"

namespace rowhouse::server {

/// One part: the slots and gradient rows of a push, in one piece of backend
/// memory, or the operands of a head call.
class StagedPart {
 public:
  /// An empty part.
  StagedPart() = default;

  /// The part of a head call; `class_weights` are its operands', or null.
  StagedPart(std::shared_ptr<const HeadOperands> head,
             std::shared_ptr<const HeldClassWeights> class_weights)
      : head_(std::move(head)), class_weights_(std::move(class_weights)) {}

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

  /// Null for rows.
  const HeadOperands* head() const { return head_.get(); }
  /// Class weights stay with the operands, and count as held no more.
  void LetClassWeightsGo() { class_weights_ = nullptr; }

  /// Backend memory that it holds.
  int64_t size_bytes() const {
    return memory_.size_bytes() + (head_ == nullptr ? 0 : head_->size_bytes());
  }
  int64_t token_count() const {
    return head_ == nullptr ? 0 : head_->token_count();
  }

 private:
  kernels::Buffer memory_;
  int64_t row_count_ = 0;
  int64_t rows_offset_ = 0;
  std::shared_ptr<const HeadOperands> head_;
  std::shared_ptr<const HeldClassWeights> class_weights_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_STAGED_PART_H_
