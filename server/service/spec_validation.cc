#include "server/service/spec_validation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/wire/error.h"
#include "proto/wire/placement.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

constexpr int64_t kMaxRowCount = int64_t{1} << 40;
constexpr int64_t kMaxRowBytes = int64_t{1} << 20;
constexpr int64_t kMaxTrainerCount = 4096;
constexpr int64_t kMaxPartCount = 65536;
// What a contribution can hold is bounded by the memory reserved for it; this
// bound keeps sums of bytes within 64 bits.
constexpr int64_t kMaxContributionRowCount = int64_t{1} << 28;
// The same; a call's tokens and hidden gradient are held whole.
constexpr int64_t kMaxHeadTokenCount = int64_t{1} << 24;
constexpr int64_t kDefaultPullBytes = int64_t{64} << 20;
constexpr int64_t kMaxPullBytes = int64_t{1} << 40;
constexpr int64_t kMaxSignRowCount = int64_t{1} << 20;
constexpr int64_t kMaxSignBytes = int64_t{1} << 20;

absl::Status CheckRange(std::string_view field, int64_t value, int64_t low,
                        int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(reasons::kBadSpec, field, value,
                    absl::StrCat("in [", low, ", ", high, "]"));
}

absl::Status CheckElementType(std::string_view field, v1::DataType dtype) {
  if (dtype == v1::DATA_TYPE_BF16 || dtype == v1::DATA_TYPE_FP32) {
    return absl::OkStatus();
  }
  const std::string found = v1::DataType_IsValid(dtype)
                                ? v1::DataType_Name(dtype)
                                : absl::StrCat(static_cast<int>(dtype));
  return FieldError(reasons::kBadSpec, field, std::string_view(found),
                    "DATA_TYPE_BF16 or DATA_TYPE_FP32");
}

kernels::DType ToDType(v1::DataType dtype) {
  return dtype == v1::DATA_TYPE_FP32 ? kernels::DType::kFp32
                                     : kernels::DType::kBf16;
}

int64_t RowBytes(const v1::TableSpec& spec) {
  return spec.dim() * kernels::SizeOf(ToDType(spec.row_dtype()));
}

absl::Status CheckShape(const v1::TableSpec& spec) {
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("spec.row_count", spec.row_count(), 1, kMaxRowCount));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckElementType("spec.row_dtype", spec.row_dtype()));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckElementType("spec.gradient_dtype", spec.gradient_dtype()));
  // A hidden gradient's rows are fp32.
  const bool wide = spec.has_dense() ||
                    spec.row_dtype() == v1::DATA_TYPE_FP32 ||
                    spec.gradient_dtype() == v1::DATA_TYPE_FP32;
  return CheckRange("spec.dim", spec.dim(), 1, kMaxRowBytes / (wide ? 4 : 2));
}

absl::Status CheckLimits(const v1::TableSpec& spec) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRange(
      "spec.trainer_count", spec.trainer_count(), 1, kMaxTrainerCount));
  if (spec.gradient_reduction() != v1::GRADIENT_REDUCTION_SUM &&
      spec.gradient_reduction() != v1::GRADIENT_REDUCTION_MEAN) {
    return FieldError(reasons::kBadSpec, "spec.gradient_reduction",
                      int64_t{spec.gradient_reduction()},
                      "GRADIENT_REDUCTION_SUM or GRADIENT_REDUCTION_MEAN");
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("spec.max_contribution_row_count",
                                      spec.max_contribution_row_count(), 1,
                                      kMaxContributionRowCount));
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("spec.max_part_count",
                                      spec.max_part_count(), 1, kMaxPartCount));
  if (spec.max_pull_bytes() == 0) return absl::OkStatus();
  return CheckRange("spec.max_pull_bytes", spec.max_pull_bytes(),
                    RowBytes(spec), kMaxPullBytes);
}

absl::Status CheckInitializer(const v1::RowInitializer& initializer) {
  if (!initializer.has_uniform()) return absl::OkStatus();
  const float bound = initializer.uniform().bound();
  if (std::isfinite(bound) && bound > 0) return absl::OkStatus();
  return FieldError(reasons::kBadSpec, "spec.initializer.uniform.bound",
                    double{bound}, "finite and above 0");
}

absl::Status CheckNgram(const v1::TableSpec& spec) {
  if (!spec.has_ngram()) return absl::OkStatus();
  const v1::NgramTable& ngram = spec.ngram();
  const int64_t rows = ngram.sign_row_count();
  if (rows < 1 || rows > kMaxSignRowCount || (rows & (rows - 1)) != 0) {
    return FieldError(reasons::kBadSpec, "spec.ngram.sign_row_count", rows,
                      "a power of two in [1, 1048576]");
  }
  if (ngram.sign_words().empty()) return absl::OkStatus();
  const int64_t wanted = rows * ((spec.dim() + 63) / 64) * 8;
  const auto found = static_cast<int64_t>(ngram.sign_words().size());
  if (found == wanted && found <= kMaxSignBytes) return absl::OkStatus();
  return FieldError(reasons::kBadSpec, "the size of spec.ngram.sign_words",
                    found,
                    absl::StrCat(wanted, " bytes for this shape, and at most ",
                                 kMaxSignBytes));
}

absl::Status CheckPolicy(std::string_view field, v1::NonFinitePolicy policy) {
  if (v1::NonFinitePolicy_IsValid(policy)) return absl::OkStatus();
  return FieldError(reasons::kBadSpec, field, int64_t{policy},
                    "a NonFinitePolicy");
}

absl::Status CheckDense(const v1::TableSpec& spec) {
  const v1::DenseTable& dense = spec.dense();
  if (dense.main_grad_dtype() != v1::DATA_TYPE_UNSPECIFIED) {
    ROWHOUSE_RETURN_IF_ERROR(CheckElementType("spec.dense.main_grad_dtype",
                                              dense.main_grad_dtype()));
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckRange("spec.dense.max_head_token_count",
                                      dense.max_head_token_count(), 0,
                                      kMaxHeadTokenCount));
  if (spec.has_ngram()) {
    return FieldError(reasons::kBadSpec, "spec.ngram", std::string_view("set"),
                      "not set for a dense table");
  }
  return CheckPolicy("spec.dense.non_finite_policy", dense.non_finite_policy());
}

absl::Status CheckKind(const v1::TableSpec& spec) {
  switch (spec.kind_case()) {
    case v1::TableSpec::kSparse:
      return CheckPolicy("spec.sparse.non_finite_policy",
                         spec.sparse().non_finite_policy());
    case v1::TableSpec::kDense:
      return CheckDense(spec);
    case v1::TableSpec::KIND_NOT_SET:
      break;
  }
  return FieldError(reasons::kBadSpec, "spec.kind", std::string_view("not set"),
                    "sparse or dense");
}

absl::StatusOr<wire::Placement> ToPlacement(const v1::TableSpec& spec) {
  if (spec.shard_bounds().empty()) {
    return wire::Placement::Even(spec.row_count(), spec.shard_count());
  }
  if (spec.shard_bounds_size() != spec.shard_count() + 1) {
    return FieldError(
        reasons::kBadBounds, "the count of spec.shard_bounds",
        int64_t{spec.shard_bounds_size()},
        absl::StrCat("shard_count + 1, ", spec.shard_count() + 1));
  }
  return wire::Placement::Explicit(spec.row_count(),
                                   SpanOf(spec.shard_bounds()));
}

template <typename Kind>
void FillPolicy(Kind& kind) {
  if (kind.non_finite_policy() == v1::NON_FINITE_POLICY_UNSPECIFIED) {
    kind.set_non_finite_policy(v1::NON_FINITE_POLICY_REJECT);
  }
}

// With defaults in place of what is not set.
void FillKind(v1::TableSpec& spec) {
  if (spec.has_sparse()) return FillPolicy(*spec.mutable_sparse());
  v1::DenseTable& dense = *spec.mutable_dense();
  FillPolicy(dense);
  if (dense.main_grad_dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    dense.set_main_grad_dtype(v1::DATA_TYPE_FP32);
  }
}

std::optional<DenseSpec> ToDense(const v1::TableSpec& spec) {
  if (!spec.has_dense()) return std::nullopt;
  return DenseSpec{.main_grad_dtype = ToDType(spec.dense().main_grad_dtype()),
                   .has_master = spec.dense().has_master(),
                   .has_bias = spec.dense().has_bias(),
                   .max_head_token_count = spec.dense().max_head_token_count()};
}

kernels::NonFinitePolicy ToPolicy(v1::NonFinitePolicy policy) {
  if (policy == v1::NON_FINITE_POLICY_SKIP_ROW) {
    return kernels::NonFinitePolicy::kSkipRow;
  }
  if (policy == v1::NON_FINITE_POLICY_PROPAGATE) {
    return kernels::NonFinitePolicy::kPropagate;
  }
  return kernels::NonFinitePolicy::kReject;
}

kernels::Initializer ToInitializer(const v1::RowInitializer& initializer) {
  if (!initializer.has_uniform()) return {};
  return {.kind = kernels::Initializer::Kind::kUniform,
          .seed = static_cast<uint64_t>(initializer.uniform().seed()),
          .bound = initializer.uniform().bound()};
}

}  // namespace

absl::StatusOr<v1::TableSpec> CanonicalSpec(const v1::TableSpec& spec,
                                            int32_t server_count) {
  ROWHOUSE_RETURN_IF_ERROR(CheckKind(spec));
  ROWHOUSE_RETURN_IF_ERROR(CheckShape(spec));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckRange("spec.shard_count", spec.shard_count(), 1, server_count));
  ROWHOUSE_RETURN_IF_ERROR(CheckInitializer(spec.initializer()));
  ROWHOUSE_RETURN_IF_ERROR(CheckLimits(spec));
  ROWHOUSE_RETURN_IF_ERROR(CheckNgram(spec));
  ROWHOUSE_ASSIGN_OR_RETURN(const wire::Placement placement, ToPlacement(spec));
  v1::TableSpec canonical = spec;
  canonical.DiscardUnknownFields();
  if (placement ==
      wire::Placement::Even(spec.row_count(), spec.shard_count())) {
    canonical.clear_shard_bounds();
  }
  if (!canonical.initializer().has_uniform()) {
    canonical.mutable_initializer()->mutable_zeros();
  }
  FillKind(canonical);
  if (canonical.max_pull_bytes() == 0) {
    canonical.set_max_pull_bytes(std::max(kDefaultPullBytes, RowBytes(spec)));
  }
  return canonical;
}

ShardSpec ToShardSpec(std::string_view table, const v1::TableSpec& spec,
                      int32_t shard_index) {
  return {
      .table = std::string(table),
      .placement = *ToPlacement(spec),
      .shard_index = shard_index,
      .dim = spec.dim(),
      .row_dtype = ToDType(spec.row_dtype()),
      .gradient_dtype = ToDType(spec.gradient_dtype()),
      .initializer = ToInitializer(spec.initializer()),
      .policy = ToPolicy(spec.has_dense() ? spec.dense().non_finite_policy()
                                          : spec.sparse().non_finite_policy()),
      .reduction = spec.gradient_reduction() == v1::GRADIENT_REDUCTION_MEAN
                       ? GradientReduction::kMean
                       : GradientReduction::kSum,
      .trainer_count = spec.trainer_count(),
      .max_contribution_row_count = spec.max_contribution_row_count(),
      .max_part_count = spec.max_part_count(),
      .max_pull_bytes = spec.max_pull_bytes(),
      .dense = ToDense(spec)};
}

absl::Status CheckSameSpec(std::string_view table,
                           const v1::TableSpec& existing,
                           const v1::TableSpec& wanted) {
  using google::protobuf::FieldDescriptor;
  using google::protobuf::util::MessageDifferencer;
  const google::protobuf::Descriptor& descriptor = *existing.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const std::vector<const FieldDescriptor*> field = {descriptor.field(i)};
    MessageDifferencer differencer;
    std::string difference;
    differencer.ReportDifferencesToString(&difference);
    if (differencer.CompareWithFields(existing, wanted, field, field)) continue;
    const std::string first = difference.substr(0, difference.find('\n'));
    return wire::Error(
        absl::StatusCode::kAlreadyExists, reasons::kTableDiffers,
        absl::StrCat(std::string(table),
                     " exists with another spec; the first difference is ",
                     first),
        {{"table", std::string(table)},
         {"field", descriptor.field(i)->name()},
         {"difference", first}});
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
