#ifndef ROWHOUSE_CLIENT_INTERNAL_EXACT_SUM_H_
#define ROWHOUSE_CLIENT_INTERNAL_EXACT_SUM_H_

#include <cstdint>
#include <span>

namespace rowhouse::client::internal {

/// The sum over x of `significand_sums[x] * 2^(max(x, 1) - 150)`, rounded once
/// to double, ties to even. Every such sum is in range: 0 or in [2^-149,
/// 2^175).
///
/// REQUIRES: at most 255 values, none below 0.
double RoundExactSum(std::span<const int64_t> significand_sums);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_EXACT_SUM_H_
