#include "server/service/head_header.h"

#include <cmath>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::StatusOr<kernels::DType> HiddenDtype(v1::DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_BF16:
      return kernels::DType::kBf16;
    case v1::DATA_TYPE_FP32:
      return kernels::DType::kFp32;
    case v1::DATA_TYPE_FP16:
      return kernels::DType::kFp16;
    default:
      break;
  }
  const std::string found = v1::DataType_IsValid(dtype)
                                ? v1::DataType_Name(dtype)
                                : absl::StrCat(static_cast<int>(dtype));
  return FieldError(reasons::kBadDtype, "header.hidden_dtype",
                    std::string_view(found),
                    "DATA_TYPE_BF16, DATA_TYPE_FP32 or DATA_TYPE_FP16");
}

}  // namespace

absl::StatusOr<HeadHeader> ToHeadHeader(
    const v1::LinearCrossEntropyHeader& header) {
  HeadHeader result;
  if (header.evaluation()) {
    if (header.frozen_weights()) {
      return FieldError(reasons::kMalformed, "header.frozen_weights",
                        std::string_view("set"),
                        "not set together with evaluation");
    }
    result.purpose = HeadPurpose::kEvaluation;
  } else if (header.frozen_weights()) {
    result.purpose = HeadPurpose::kFrozen;
  }
  if (header.has_trainer() || !header.evaluation()) {
    ROWHOUSE_ASSIGN_OR_RETURN(result.trainer, TrainerOf(header));
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckEvent("header.event", header.event(), 1));
  result.event = header.event();
  result.part = header.part();
  result.token_count = header.token_count();
  ROWHOUSE_ASSIGN_OR_RETURN(result.hidden_dtype,
                            HiddenDtype(header.hidden_dtype()));
  if (header.has_ignore_index()) result.ignore_index = header.ignore_index();
  if (header.has_softcap()) {
    if (!(header.softcap() > 0) || !std::isfinite(header.softcap())) {
      return FieldError(reasons::kBadScalar, "header.softcap",
                        double{header.softcap()}, "finite and above 0");
    }
    result.softcap = header.softcap();
  }
  result.class_weights = header.class_weights();
  result.weighted_logit_sums = header.weighted_logit_sums();
  result.predicted = header.predicted_rows();
  result.coefficients = header.coefficients();
  return result;
}

}  // namespace rowhouse::server
