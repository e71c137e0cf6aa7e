#include "kernels/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <string>

#include "kernels/cpu/gemm_amx.h"

namespace rowhouse::kernels::cpu {
namespace {

CBLAS_TRANSPOSE TransposeOf(const Operand& operand) {
  return operand.transposed ? CblasTrans : CblasNoTrans;
}

// BLAS wants strides of at least 1 even of matrices without columns.
int StrideOf(int64_t stride) {
  return static_cast<int>(std::max<int64_t>(stride, 1));
}

}  // namespace

int64_t MultiplyScratchFloats(CpuIsa isa) {
  return isa == CpuIsa::kAmx ? amx::kScratchFloats : 0;
}

void Multiply(CpuIsa isa, const Operand& a, const Operand& b,
              const ProductShape& shape, Into into, float* out, int64_t stride,
              float* scratch) {
  if (isa == CpuIsa::kAmx) {
    return amx::Multiply(a, b, shape, into, out, stride, scratch);
  }
  [[maybe_unused]] static const bool one_thread = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  cblas_sgemm(CblasRowMajor, TransposeOf(a), TransposeOf(b),
              static_cast<int>(shape.m), static_cast<int>(shape.n),
              static_cast<int>(shape.k), 1.0F, a.data, StrideOf(a.stride),
              b.data, StrideOf(b.stride), into == Into::kAdd ? 1.0F : 0.0F, out,
              StrideOf(stride));
}

std::string DescribeGemm(CpuIsa isa) {
  if (isa == CpuIsa::kAmx) return "products by tiles";
  return std::string(openblas_get_config()) + ", " + openblas_get_corename();
}

}  // namespace rowhouse::kernels::cpu
