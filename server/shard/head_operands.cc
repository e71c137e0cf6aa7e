#include "server/shard/head_operands.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kFloatArrays = 3;  // max_logits, exp_sums, upstream.
constexpr int64_t kTokenBytes =
    static_cast<int64_t>(sizeof(int64_t) + kFloatArrays * sizeof(float));

// Targets come first, then the arrays of floats, then, aligned, the rows.
int64_t HiddenOffset(int64_t token_count) {
  constexpr int64_t kAlignment = 256;
  return (token_count * kTokenBytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

int64_t HeadOperands::SizeBytes(int64_t token_count, int64_t dim,
                                kernels::DType hidden_dtype) {
  return HiddenOffset(token_count) +
         token_count * dim * kernels::SizeOf(hidden_dtype);
}

absl::StatusOr<HeadOperands> HeadOperands::Allocate(
    kernels::Backend& backend, int64_t token_count, int64_t dim,
    kernels::DType hidden_dtype) {
  HeadOperands operands;
  operands.token_count_ = token_count;
  operands.hidden_offset_ = HiddenOffset(token_count);
  operands.hidden_dtype_ = hidden_dtype;
  if (token_count == 0) return operands;
  ROWHOUSE_ASSIGN_OR_RETURN(
      operands.memory_,
      backend.Allocate(SizeBytes(token_count, dim, hidden_dtype)));
  return operands;
}

float* HeadOperands::Floats(int64_t array) const {
  constexpr auto kTarget = static_cast<int64_t>(sizeof(int64_t));
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  return reinterpret_cast<float*>(
      At(token_count_ * (kTarget + array * kFloat)));
}

kernels::HeadInputs HeadOperands::inputs() const {
  return {hidden(), hidden_dtype_, token_count_, targets()};
}

kernels::HeadMerged HeadOperands::merged() const {
  return {max_logits(), exp_sums(), upstream()};
}

}  // namespace rowhouse::server
