#ifndef ROWHOUSE_KERNELS_CPU_GEMM_AMX_H_
#define ROWHOUSE_KERNELS_CPU_GEMM_AMX_H_

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace rowhouse::kernels::cpu::amx {

/// Whether this CPU multiplies bf16 tiles (AMX-BF16, with AVX512_BF16 beside
/// it) and the system lets this process use them. The first call asks it to.
bool IsAvailable();

/// Of `Multiply`: packed operands.
inline constexpr int64_t kScratchFloats = 332'800;

/// `Multiply` (gemm.h) of bf16 tiles with fp32 sums, on the calling thread.
///
/// An fp32 number is the sum of three bf16 ones, exactly; an fp16 one of two.
/// Of the nine products of parts three are left out, together less than 2^-21
/// of the whole and always towards zero; the others are all added to the one
/// sum. An element of the result depends on its row of `a` and its column of
/// `b` alone, not on where it stands nor on what stands beside it.
///
/// The CPU takes subnormal numbers for 0, parts, products and sums too. An
/// infinite number that is not of type kBf16 gives NaN.
///
/// REQUIRES: `IsAvailable()`.
void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
              Into into, float* out, int64_t stride, float* scratch);

}  // namespace rowhouse::kernels::cpu::amx

#endif  // ROWHOUSE_KERNELS_CPU_GEMM_AMX_H_
