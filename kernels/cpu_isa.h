#ifndef ROWHOUSE_KERNELS_CPU_ISA_H_
#define ROWHOUSE_KERNELS_CPU_ISA_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace rowhouse::kernels {

/// The instructions that the CPU backend's loops are compiled for. All give the
/// same bits but for products of matrices, which the head alone has.
enum class CpuIsa : uint8_t {
  kPortable = 1,  ///< Those every CPU of the build's kind has.
  kAvx2 = 2,
  kAvx512 = 3,  ///< AVX-512 F, BW, DQ and VL.
  kAmx = 4,     ///< The same, with products of bf16 tiles (AMX-BF16).
};

/// "portable", "avx2", "avx512" or "amx".
std::string NameOf(CpuIsa isa);

/// Whether this CPU and its operating system run `isa`.
bool HasCpuIsa(CpuIsa isa);

/// The widest that `HasCpuIsa`.
CpuIsa BestCpuIsa();

/// `wanted`; if not given, what the environment variable ROWHOUSE_CPU_ISA
/// names; if that is unset or empty, the best.
///
/// Errors:
///   kInvalidArgument  ROWHOUSE_CPU_ISA names none.
///   kNotFound         this CPU does not run it.
absl::StatusOr<CpuIsa> ChooseCpuIsa(std::optional<CpuIsa> wanted);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_CPU_ISA_H_
