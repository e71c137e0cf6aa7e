#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_LOSS_CORE_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_LOSS_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/head_call.h"
#include "client/internal/trainer_core.h"
#include "rowhouse/lm_head.h"

namespace rowhouse::client::internal {

/// A batch, and where it is.
struct PlacedBatch {
  std::span<const int64_t> targets;   ///< With the host.
  std::span<const std::byte> hidden;  ///< Of `device`'s memory, or the host's.
  DType hidden_dtype = DType::kBf16;
  kernels::Backend* device = nullptr;
  std::vector<int64_t> target_copy = {};  ///< `targets` of a device, or empty.
};

/// Finds out where a batch is. The views must stay.
///
/// Errors:
///   kInvalidArgument  in another device's memory.
absl::StatusOr<PlacedBatch> PlaceBatch(const ClusterCore& cluster,
                                       const HeadBatch& batch);

/// What stands behind a `HeadLoss`: a call, and its part of the contribution.
///
/// Thread-compatible.
class HeadLossCore {
 public:
  /// Takes a part number, unless the weights are frozen, and computes the
  /// losses. Errors: those of `LmHead::Forward`.
  ///
  /// REQUIRES: the batch has been checked.
  static absl::StatusOr<std::unique_ptr<HeadLossCore>> Forward(
      std::shared_ptr<TrainerCore> trainer, const HeadBatch& batch,
      const HeadOptions& options);

  ~HeadLossCore();

  double loss() const;
  double z_loss() const;
  std::span<const float> token_losses() const { return call_.losses(); }
  std::span<const int64_t> predicted() const { return call_.predicted(); }
  const HeadSums& sums() const { return call_.sums(); }
  int32_t part() const { return call_.header().part; }

  absl::Status Backward(double upstream, std::span<std::byte> hidden_gradient,
                        const BackwardOptions& options);
  absl::Status Backward(std::span<const float> upstream,
                        std::span<std::byte> hidden_gradient,
                        const BackwardOptions& options);

 private:
  HeadLossCore(std::shared_ptr<TrainerCore> trainer, const HeadOptions& options,
               const PartNumber& number, const HeadHeader& header,
               PlacedBatch batch);

  bool is_part() const {
    return call_.header().purpose == HeadPurpose::kTraining;
  }
  void LeaveFrozenGate();
  double weight_divisor() const;
  double token_divisor() const;
  absl::Status Run(absl::FunctionRef<HeadUpstream(int64_t)> upstream,
                   std::span<std::byte> hidden_gradient,
                   const BackwardOptions& options);

  const std::shared_ptr<TrainerCore> trainer_;
  const HeadOptions options_;
  const PartNumber number_;
  const PlacedBatch batch_;
  HeadCall call_;
  bool done_ = false;  // `Backward` has succeeded.
  bool in_frozen_gate_ = false;
};

/// The header of a trainer's head call, for training; checks its batch.
///
/// Errors:
///   kInvalidArgument  BAD_EVENT, BAD_SHAPE, BAD_SCALAR, BAD_COUNT.
///   kOutOfRange       ROW_OUT_OF_TABLE: names the first bad target.
absl::StatusOr<HeadHeader> CheckedHeader(const TrainerCore& trainer,
                                         const PlacedBatch& batch,
                                         int64_t event, int64_t ignore_index,
                                         const LossTerms& terms);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_LOSS_CORE_H_
