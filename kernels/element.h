#ifndef ROWHOUSE_KERNELS_ELEMENT_H_
#define ROWHOUSE_KERNELS_ELEMENT_H_

/// Elements in memory, for host and device: bf16 elements are `uint16_t`, fp32
/// elements `float`, fp16 elements `Fp16`.

#include <cassert>
#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels {

struct Fp16 {
  uint16_t bits;
};

constexpr float Widen(uint16_t bits) { return Bf16ToFloat(bits); }
constexpr float Widen(float x) { return x; }
constexpr float Widen(Fp16 x) { return Fp16ToFloat(x.bits); }

/// Rounds to `T`, NaN to the canonical one.
template <typename T>
constexpr T Narrow(float x);
template <>
constexpr uint16_t Narrow<uint16_t>(float x) {
  return FloatToBf16(x);
}
template <>
constexpr float Narrow<float>(float x) {
  return Canonical(x);
}
template <>
constexpr Fp16 Narrow<Fp16>(float x) {
  return {FloatToFp16(x)};
}

/// Calls `visit.template operator()<T>()` with the element type of `dtype`.
///
/// REQUIRES: `dtype` is not kFp16, which sparse tables have not.
template <typename Visit>
void WithElement(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kBf16:
      return visit.template operator()<uint16_t>();
    case DType::kFp32:
      return visit.template operator()<float>();
    case DType::kFp16:
      assert(false);
  }
}

/// The same for dense tables and the head, with kFp16.
template <typename Visit>
void WithDenseElement(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kBf16:
      return visit.template operator()<uint16_t>();
    case DType::kFp32:
      return visit.template operator()<float>();
    case DType::kFp16:
      return visit.template operator()<Fp16>();
  }
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_ELEMENT_H_
