#ifndef ROWHOUSE_SERVER_SHARD_DENSE_STORE_H_
#define ROWHOUSE_SERVER_SHARD_DENSE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "server/shard/fold_cursor.h"
#include "server/shard/head_landing.h"
#include "server/shard/kept_gradients.h"
#include "server/shard/shard.h"
#include "server/shard/table_store.h"

namespace rowhouse::server {

/// The rows of a dense table and its gradient buffer. Parts of the next event
/// are folded into it one by one, in the order (part, trainer_rank), as soon as
/// their turn has come; the event then updates every row by AdamW.
class DenseStore final : public TableStore {
 public:
  /// Bytes of a shard's rows with all that belongs to them.
  static int64_t RowBytes(const ShardSpec& spec);

  /// Bytes that the logits of an event's head calls, or their gradients, may
  /// take; 0 for a table without a head.
  static int64_t KeptBytes(const ShardSpec& spec, const ShardLimits& limits);

  /// Without rows: `Reset` makes them.
  DenseStore(const ShardSpec& spec, const ShardLimits& limits,
             kernels::Backend& backend);

  kernels::RowTable rows() const override {
    return kernels::WeightRows(table_);
  }
  const kernels::Buffer& weights() const override { return weights_; }
  std::vector<void*> columns() const override;
  absl::Status Reset() override;
  absl::Status WriteRows(int64_t first_slot, int64_t row_count,
                         const void* rows) override;
  absl::Status BringCurrent(const Beta2History&,
                            std::span<const int64_t>) override {
    return absl::OkStatus();  // Rows always are.
  }
  absl::StatusOr<uint64_t> Digest(const Beta2History& history) override;
  absl::StatusOr<kernels::GradientStatistics> Statistics(
      const Events& events) override;
  absl::StatusOr<float> Apply(const Events& events, const EventCommit& commit,
                              int64_t divisor, const Beta2History& history,
                              kernels::EventReport& report) override;

  /// Whether the next event has a part whose turn to be folded has come.
  bool FoldWaits(const Events& events) {
    return folds_.Next(events) != nullptr;
  }

  /// Folds that part.
  absl::Status FoldNext(const Events& events);

  /// Clears what was folded: the event is skipped, or a part of it has gone and
  /// the rest is folded again.
  absl::Status DropFolds();

  /// Parts of a rank's contribution to the next event that are folded.
  int32_t FoldedCount(const Contribution& contribution,
                      int32_t trainer_rank) const {
    return folds_.FoldedCount(contribution, trainer_rank);
  }

  /// Statistics and hidden gradient of a head call, on the weights as they are.
  absl::Status ComputeHeadStatistics(HeadLanding& head);
  absl::Status ComputeHiddenGradient(HeadLanding& head);

 private:
  absl::Status Allocate(int64_t size_bytes, void*& data);
  template <typename T>
  absl::Status AllocateRows(int64_t columns, T*& data);
  absl::Status AllocateArrays();
  kernels::HeadSlice Slice(const HeadOperands& head) const;
  std::span<std::byte> Keep(
      const std::shared_ptr<const HeadOperands>& operands);
  absl::Status Fold(const StagedPart& part);
  absl::Status FoldHead(const HeadOperands& head);
  absl::Status FoldRest(const Events& events);

  const ShardSpec& spec_;
  const bool one_sided_;
  const kernels::HeadBlocks blocks_;
  kernels::Backend& backend_;
  kernels::DenseTable table_;
  kernels::Buffer weights_;
  std::vector<kernels::Buffer> memory_;  // Of the rest of `table_`.
  FoldCursor folds_;
  KeptGradients kept_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_DENSE_STORE_H_
