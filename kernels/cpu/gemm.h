#ifndef ROWHOUSE_KERNELS_CPU_GEMM_H_
#define ROWHOUSE_KERNELS_CPU_GEMM_H_

#include <cstdint>
#include <string>

namespace rowhouse::kernels::cpu {

/// An fp32 operand of a product, row-major: element (i, j) is
/// `data[i * stride + j]`, or with `transposed` `data[j * stride + i]`.
struct Operand {
  const float* data;
  int64_t stride;
  bool transposed = false;
};

/// Sizes of a product [m, k] x [k, n]; each fits an int.
struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

enum class Into : uint8_t { kWrite, kAdd };

/// `out = a x b` or `out += a x b` by OpenBLAS on the calling thread; sets
/// OpenBLAS to one thread a call. Row `i` of `out` begins at `i * stride`. The
/// order of sums is OpenBLAS's own: it repeats for the same shape on the same
/// machine, and may differ between places in a matrix.
void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
              Into into, float* out, int64_t stride);

/// Version, build and kernels of the OpenBLAS in use: what the order of sums
/// depends on besides the shape.
std::string DescribeGemm();

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_GEMM_H_
