#ifndef ROWHOUSE_KERNELS_OPENBLAS_H_
#define ROWHOUSE_KERNELS_OPENBLAS_H_

#include <optional>
#include <string>

#include "kernels/cpu_isa.h"

namespace rowhouse::kernels {

/// What to set so that the CPU backend's products of matrices are fast, if they
/// are not: OpenBLAS takes CPUs newer than itself for very old ones, some ten
/// times slower, and reads what would tell it better before `main`. Nothing for
/// `kAmx`, which does without OpenBLAS.
std::optional<std::string> OpenBlasAdvice(CpuIsa isa);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_OPENBLAS_H_
