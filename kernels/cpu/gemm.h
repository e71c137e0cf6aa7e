#ifndef ROWHOUSE_KERNELS_CPU_GEMM_H_
#define ROWHOUSE_KERNELS_CPU_GEMM_H_

#include <cstdint>
#include <string>

#include "kernels/cpu_isa.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels::cpu {

/// An operand of a product, row-major: element (i, j) is
/// `data[i * stride + j]`, or with `transposed` `data[j * stride + i]`. All are
/// numbers of `dtype`, held as fp32.
struct Operand {
  const float* data;
  int64_t stride;
  DType dtype;
  bool transposed = false;
};

/// The same matrix, read the other way.
inline Operand Transposed(Operand operand) {
  operand.transposed = !operand.transposed;
  return operand;
}

/// Sizes of a product [m, k] x [k, n]; each fits an int.
struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

enum class Into : uint8_t { kWrite, kAdd };

/// Elements of the scratch that a thread needs for `Multiply`, a whole number
/// of 64-byte lines: of kAmx 1.3 MB of packed operands, else none.
int64_t MultiplyScratchFloats(CpuIsa isa);

/// `out = a x b` or `out += a x b` with fp32 sums on the calling thread. Row
/// `i` of `out` begins at `i * stride`. `scratch`: `MultiplyScratchFloats`
/// elements of the thread's own, aligned to 64 bytes; what is in them does not
/// matter.
///
/// For kAmx by tiles (gemm_amx.h), else by OpenBLAS, which it sets to one
/// thread a call. The order of OpenBLAS's sums is its own: it repeats for the
/// same shape on the same machine, and may differ between places in a matrix.
void Multiply(CpuIsa isa, const Operand& a, const Operand& b,
              const ProductShape& shape, Into into, float* out, int64_t stride,
              float* scratch);

/// What the order of the sums of `Multiply` depends on besides the shape:
/// tiles, or version, build and kernels of the OpenBLAS in use.
std::string DescribeGemm(CpuIsa isa);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_GEMM_H_
