#include "kernels/openblas.h"

#include <cblas.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace rowhouse::kernels {

std::optional<std::string> OpenBlasAdvice(CpuIsa isa) {
  if (isa == CpuIsa::kAmx || !HasCpuIsa(CpuIsa::kAvx2)) return std::nullopt;
  const std::string kernels = openblas_get_corename();
  // What it takes Intel's and AMD's unknown CPUs for.
  if (kernels != "Prescott" && kernels != "Barcelona") return std::nullopt;
  return absl::StrCat(
      "OpenBLAS takes this CPU for an old one (", kernels,
      ") and multiplies some ten times slower than it can; start with the "
      "environment variable OPENBLAS_CORETYPE=",
      HasCpuIsa(CpuIsa::kAvx512) ? "SkylakeX" : "Haswell");
}

}  // namespace rowhouse::kernels
