#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_TERMS_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_TERMS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/internal/head_stream.h"
#include "kernels/head_loss.h"
#include "rowhouse/lm_head.h"

namespace rowhouse::client::internal {

/// Errors:
///   kInvalidArgument  BAD_SCALAR: a term is not finite or out of range;
///                     BAD_COUNT: not a class weight for each of `row_count`
///                     rows.
absl::Status CheckTerms(const LossTerms& terms, int64_t row_count);

/// Has `header`, whose tokens are known, ask for what the terms need.
void AskFor(const LossTerms& terms, HeadHeader& header);

/// The terms, checked, over so many rows.
kernels::HeadLossTerms ToKernel(const LossTerms& terms, int64_t row_count);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_TERMS_H_
