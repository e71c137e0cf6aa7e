#ifndef ROWHOUSE_KERNELS_DTYPE_H_
#define ROWHOUSE_KERNELS_DTYPE_H_

#include <cstdint>

namespace rowhouse::kernels {

/// Element types of rows and gradients. Little-endian in memory and on the
/// wire.
enum class DType : uint8_t {
  kBf16 = 1,  ///< bfloat16: the upper half of an IEEE binary32.
  kFp32 = 2,  ///< IEEE binary32.
  kFp16 = 3,  ///< IEEE binary16; dense tables and the head only.
};

/// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  return dtype == DType::kFp32 ? 4 : 2;
}

/// "bf16", "fp32" or "fp16".
constexpr const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "bf16";
    case DType::kFp32:
      return "fp32";
    case DType::kFp16:
      return "fp16";
  }
  return "unknown";
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_DTYPE_H_
