// For processors of other kinds.

#include <cstdlib>

#include "kernels/cpu/gemm_amx.h"

namespace rowhouse::kernels::cpu::amx {

bool IsAvailable() { return false; }

void Multiply(const Operand&, const Operand&, const ProductShape&, Into, float*,
              int64_t, float*) {
  std::abort();  // Nobody may call it.
}

}  // namespace rowhouse::kernels::cpu::amx
