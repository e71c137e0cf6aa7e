#include "client/internal/head_terms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status CheckScalar(bool good, const std::string& what, double found,
                         const char* wanted) {
  if (good && std::isfinite(found)) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kBadScalar,
                     absl::StrCat(what, " ", found, ", wanted ", wanted),
                     {{"field", what}, {"found", absl::StrCat(found)}});
}

absl::Status CheckClassWeights(std::span<const float> weights,
                               int64_t row_count) {
  if (weights.empty()) return absl::OkStatus();
  if (std::ssize(weights) != row_count) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadCount,
                       absl::StrCat(std::ssize(weights),
                                    " class weights, wanted one for each of ",
                                    row_count, " rows"),
                       {{"found", absl::StrCat(std::ssize(weights))}});
  }
  const auto bad = std::find_if(
      weights.begin(), weights.end(),
      [](float weight) { return !(weight >= 0 && std::isfinite(weight)); });
  if (bad == weights.end()) return absl::OkStatus();
  return CheckScalar(
      false, absl::StrCat("class weight of row ", bad - weights.begin()), *bad,
      "a finite one of at least 0");
}

}  // namespace

absl::Status CheckTerms(const LossTerms& terms, int64_t row_count) {
  ROWHOUSE_RETURN_IF_ERROR(
      CheckScalar(terms.label_smoothing >= 0 && terms.label_smoothing < 1,
                  "label_smoothing", terms.label_smoothing, "one in [0, 1)"));
  ROWHOUSE_RETURN_IF_ERROR(CheckScalar(
      terms.z_loss >= 0, "z_loss", terms.z_loss, "a finite one of at least 0"));
  if (terms.softcap.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckScalar(
        *terms.softcap > 0, "softcap", *terms.softcap, "a finite one above 0"));
  }
  return CheckClassWeights(terms.class_weights, row_count);
}

void AskFor(const LossTerms& terms, HeadHeader& header) {
  const bool smooth = terms.label_smoothing > 0 && header.token_count > 0;
  header.softcap = terms.softcap.value_or(0.0F);
  // Else a class weight meets its own token alone, here.
  header.class_weights = smooth && !terms.class_weights.empty();
  header.weighted_logit_sums = smooth;
  header.predicted = terms.predict;
  header.coefficients = smooth || terms.z_loss > 0;
}

kernels::HeadLossTerms ToKernel(const LossTerms& terms, int64_t row_count) {
  const std::span<const float> weights = terms.class_weights;
  return {terms.label_smoothing, terms.z_loss,
          weights.empty()
              ? static_cast<double>(row_count)
              : std::accumulate(weights.begin(), weights.end(), 0.0),
          std::max<int64_t>(row_count, 1)};
}

}  // namespace rowhouse::client::internal
