#include "client/internal/head_loss_core.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/head_terms.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status BadCount(std::string_view what, int64_t found,
                      std::string_view wanted) {
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kBadCount,
                     absl::StrCat(std::string(what), " ", found, ", wanted ",
                                  std::string(wanted)),
                     {{"found", std::to_string(found)}});
}

absl::Status CheckMean(const HeadOptions& options) {
  if (options.mean_token_count.value_or(0) < 0) {
    return BadCount("mean_token_count", *options.mean_token_count,
                    "a count of tokens");
  }
  if (!options.mean_weight_sum.has_value()) return absl::OkStatus();
  const double sum = *options.mean_weight_sum;
  if (std::isfinite(sum) && sum >= 0 && !options.terms.class_weights.empty()) {
    return absl::OkStatus();
  }
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kBadScalar,
                     absl::StrCat("mean_weight_sum ", sum,
                                  options.terms.class_weights.empty()
                                      ? " without class weights, wanted none"
                                      : ", wanted a finite one of at least 0"),
                     {{"found", absl::StrCat(sum)}});
}

absl::Status CheckReduction(const HeadOptions& options, bool one_upstream) {
  if ((options.reduction != LossReduction::kNone) == one_upstream) {
    return absl::OkStatus();
  }
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadCount,
      one_upstream ? "one upstream gradient of a loss that is not reduced, "
                     "wanted one a token"
                   : "an upstream gradient a token of a loss that is reduced, "
                     "wanted one");
}

absl::Status BackwardTwice(int64_t event, int32_t part) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kOutOfOrder,
      absl::StrCat("a second backward of part ", part, " of event ", event,
                   ", wanted one of each loss"),
      {{"event", std::to_string(event)}, {"part", std::to_string(part)}});
}

}  // namespace

absl::StatusOr<PlacedBatch> PlaceBatch(const ClusterCore& cluster,
                                       const HeadBatch& batch) {
  PlacedBatch placed{batch.targets, batch.hidden, batch.hidden_dtype};
  ROWHOUSE_ASSIGN_OR_RETURN(placed.device, cluster.DeviceOf(batch.hidden));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            cluster.DeviceOf(std::as_bytes(batch.targets)));
  if (device == nullptr) return placed;
  placed.target_copy.resize(batch.targets.size());
  ROWHOUSE_RETURN_IF_ERROR(
      device->Copy(batch.targets.data(), placed.target_copy.data(),
                   static_cast<int64_t>(batch.targets.size_bytes())));
  ROWHOUSE_RETURN_IF_ERROR(device->Synchronize());
  placed.targets = placed.target_copy;
  return placed;
}

absl::StatusOr<std::unique_ptr<HeadLossCore>> HeadLossCore::Forward(
    std::shared_ptr<TrainerCore> trainer, const HeadBatch& batch,
    const HeadOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckMean(options));
  ROWHOUSE_ASSIGN_OR_RETURN(PlacedBatch placed,
                            PlaceBatch(trainer->cluster(), batch));
  ROWHOUSE_ASSIGN_OR_RETURN(HeadHeader header,
                            CheckedHeader(*trainer, placed, options.event,
                                          options.ignore_index, options.terms));
  PartNumber number;
  if (options.frozen_weights) {
    header.purpose = HeadPurpose::kFrozen;
  } else {
    ROWHOUSE_ASSIGN_OR_RETURN(number, trainer->contributions().BeginPart(
                                          options.event, options.part));
    header.part = number.part;
  }
  const CallContext context = trainer->Context(options.timeout);
  std::unique_ptr<HeadLossCore> core(new HeadLossCore(
      std::move(trainer), options, number, header, std::move(placed)));
  if (options.frozen_weights) {
    ROWHOUSE_RETURN_IF_ERROR(core->trainer_->frozen_gate().Enter(
        /*shard=*/0, core->trainer_->cluster().clock(), context));
    core->in_frozen_gate_ = true;
  }
  ROWHOUSE_RETURN_IF_ERROR(core->call_.ComputeLosses(context));
  return core;
}

HeadLossCore::HeadLossCore(std::shared_ptr<TrainerCore> trainer,
                           const HeadOptions& options, const PartNumber& number,
                           const HeadHeader& header, PlacedBatch batch)
    : trainer_(std::move(trainer)),
      options_(options),
      number_(number),
      batch_(std::move(batch)),
      call_(trainer_->cluster(), trainer_->router().placement(), header,
            {batch_.targets, batch_.hidden, options.terms.class_weights,
             batch_.device},
            ToKernel(options.terms, trainer_->table().spec.row_count)) {}

HeadLossCore::~HeadLossCore() {
  LeaveFrozenGate();
  if (!is_part() || done_) return;
  trainer_->contributions().EndPart(options_.event, number_, /*landed=*/false);
}

void HeadLossCore::LeaveFrozenGate() {
  if (std::exchange(in_frozen_gate_, false)) {
    trainer_->frozen_gate().Leave(/*shard=*/0);
  }
}

// Of the z-loss, and of all where there are no class weights.
double HeadLossCore::token_divisor() const {
  if (options_.reduction != LossReduction::kMean) return 1;
  const int64_t count =
      options_.mean_token_count.value_or(sums().valid_token_count);
  return static_cast<double>(std::max<int64_t>(count, 1));
}

double HeadLossCore::weight_divisor() const {
  if (options_.reduction != LossReduction::kMean ||
      options_.terms.class_weights.empty()) {
    return token_divisor();
  }
  const double sum = options_.mean_weight_sum.value_or(sums().target_weight);
  return sum > 0 ? sum : 1;
}

double HeadLossCore::z_loss() const {
  if (options_.reduction == LossReduction::kNone) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sums().z_loss / token_divisor();
}

double HeadLossCore::loss() const {
  return sums().cross_entropy / weight_divisor() + z_loss();
}

absl::Status HeadLossCore::Backward(double upstream,
                                    std::span<std::byte> hidden_gradient,
                                    const BackwardOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckReduction(options_, /*one_upstream=*/true));
  const HeadUpstream each = {upstream / weight_divisor(),
                             upstream / token_divisor()};
  return Run([&](int64_t) { return each; }, hidden_gradient, options);
}

absl::Status HeadLossCore::Backward(std::span<const float> upstream,
                                    std::span<std::byte> hidden_gradient,
                                    const BackwardOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(CheckReduction(options_, /*one_upstream=*/false));
  if (std::ssize(upstream) != call_.header().token_count) {
    return BadCount("upstream gradients:", std::ssize(upstream),
                    absl::StrCat("one for each of ", call_.header().token_count,
                                 " tokens"));
  }
  return Run(
      [&](int64_t token) {
        return HeadUpstream{upstream[token], upstream[token]};
      },
      hidden_gradient, options);
}

absl::Status HeadLossCore::Run(
    absl::FunctionRef<HeadUpstream(int64_t)> upstream,
    std::span<std::byte> hidden_gradient, const BackwardOptions& options) {
  const HeadHeader& header = call_.header();
  if (done_) return BackwardTwice(options_.event, part());
  const DType dtype = options.gradient_dtype.value_or(header.hidden_dtype);
  if (dtype != header.hidden_dtype && dtype != DType::kFp32) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadDtype,
                       "a hidden gradient of another type, wanted that of the "
                       "hidden states or fp32");
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckBufferSize(
      hidden_gradient.size(), header.token_count, header.dim * SizeOf(dtype)));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            trainer_->cluster().DeviceOf(hidden_gradient));
  HeadGradientSum sum(trainer_->router().shard_count(), header.token_count,
                      header.dim, device);
  ROWHOUSE_RETURN_IF_ERROR(sum.Start());
  ROWHOUSE_RETURN_IF_ERROR(call_.SumGradients(
      call_.CoefficientsOf(upstream), sum, trainer_->Context(options.timeout)));
  ROWHOUSE_RETURN_IF_ERROR(sum.Narrow(dtype, hidden_gradient));
  done_ = true;
  LeaveFrozenGate();
  if (is_part()) {
    trainer_->contributions().EndPart(options_.event, number_,
                                      /*landed=*/true);
    trainer_->flushes().Push({options_.event, part()});
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::client::internal
