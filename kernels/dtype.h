#ifndef ROWHOUSE_KERNELS_DTYPE_H_
#define ROWHOUSE_KERNELS_DTYPE_H_

#include <cstdint>

namespace rowhouse::kernels {

/// Element types of rows and gradients. Little-endian in memory and on the
/// wire.
enum class DType : uint8_t {
  kBf16 = 1,  ///< bfloat16: the upper half of an IEEE binary32.
  kFp32 = 2,  ///< IEEE binary32.
};

/// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  return dtype == DType::kFp32 ? 4 : 2;
}

/// "bf16" or "fp32".
constexpr const char* NameOf(DType dtype) {
  return dtype == DType::kFp32 ? "fp32" : "bf16";
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_DTYPE_H_
