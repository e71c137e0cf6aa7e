#ifndef ROWHOUSE_KERNELS_FINITE_CHECK_H_
#define ROWHOUSE_KERNELS_FINITE_CHECK_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace rowhouse::kernels {

/// Finds elements that are not finite, some to a word: with the exponent's
/// lowest bit added, an exponent of all ones carries into the sign's place.
struct FiniteCheck {
  uint64_t exponents;
  uint64_t ones;
  uint64_t carries;

  static constexpr FiniteCheck Of(DType dtype) {
    switch (dtype) {
      case DType::kBf16:
        return {0x7f807f807f807f80ULL, 0x0080008000800080ULL,
                0x8000800080008000ULL};
      case DType::kFp32:
        return {0x7f8000007f800000ULL, 0x0080000000800000ULL,
                0x8000000080000000ULL};
      case DType::kFp16:
        return {0x7c007c007c007c00ULL, 0x0400040004000400ULL,
                0x8000800080008000ULL};
    }
    return {};
  }

  /// The sign bits of the elements that are not finite; 0 where all are.
  constexpr uint64_t Carries(uint64_t word) const {
    return ((word & exponents) + ones) & carries;
  }
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_FINITE_CHECK_H_
