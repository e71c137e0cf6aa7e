#include "server/shard/head_operands.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kFloatArrays = 3;  // max_logits, exp_sums, upstream.
constexpr int64_t kCoefficientArrays = 2;
constexpr auto kTargetBytes = static_cast<int64_t>(sizeof(int64_t));
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Targets come first, then the arrays of floats, then, aligned, the rows.
int64_t HiddenOffset(const HeadHeader& header) {
  constexpr int64_t kAlignment = 256;
  const int64_t arrays =
      kFloatArrays + (header.coefficients ? kCoefficientArrays : 0);
  const int64_t bytes =
      header.token_count * (kTargetBytes + arrays * kFloatBytes);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<HeadOperands> HeadOperands::Allocate(kernels::Backend& backend,
                                                    const HeadHeader& header,
                                                    int64_t dim) {
  HeadOperands operands;
  operands.token_count_ = header.token_count;
  operands.hidden_offset_ = HiddenOffset(header);
  operands.hidden_dtype_ = header.hidden_dtype;
  operands.has_coefficients_ = header.coefficients;
  operands.softcap_ = header.softcap;
  if (header.token_count == 0) return operands;
  ROWHOUSE_ASSIGN_OR_RETURN(
      operands.memory_,
      backend.Allocate(operands.hidden_offset_ +
                       header.token_count * dim *
                           kernels::SizeOf(header.hidden_dtype)));
  return operands;
}

float* HeadOperands::Floats(int64_t array) const {
  return reinterpret_cast<float*>(
      At(token_count_ * (kTargetBytes + array * kFloatBytes)));
}

kernels::HeadInputs HeadOperands::inputs() const {
  return {hidden(), hidden_dtype_, token_count_, targets()};
}

kernels::HeadMerged HeadOperands::merged() const {
  if (!has_coefficients_) {
    return {max_logits(), exp_sums(), upstream(), upstream()};
  }
  return {max_logits(), exp_sums(), upstream(), target(), smoothing()};
}

}  // namespace rowhouse::server
