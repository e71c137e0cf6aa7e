#include "kernels/cpu_isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/gemm_amx.h"

namespace rowhouse::kernels {
namespace {

constexpr std::array kFromBest = {CpuIsa::kAmx, CpuIsa::kAvx512, CpuIsa::kAvx2,
                                  CpuIsa::kPortable};

absl::StatusOr<CpuIsa> IsaOfEnvironment() {
  const char* const text = std::getenv("ROWHOUSE_CPU_ISA");
  const std::string name = text == nullptr ? "" : text;
  if (name.empty()) return BestCpuIsa();
  for (const CpuIsa isa : kFromBest) {
    if (name == NameOf(isa)) return isa;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("ROWHOUSE_CPU_ISA is '", name,
                   "'; it must be 'portable', 'avx2', 'avx512' or 'amx'"));
}

}  // namespace

std::string NameOf(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return "portable";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAmx:
      return "amx";
  }
  return "";
}

bool HasCpuIsa(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return true;
    case CpuIsa::kAvx2:
      return cpu::HasAvx2();
    case CpuIsa::kAvx512:
      return cpu::HasAvx512();
    case CpuIsa::kAmx:
      return cpu::HasAvx512() && cpu::amx::IsAvailable();
  }
  return false;
}

CpuIsa BestCpuIsa() {
  for (const CpuIsa isa : kFromBest) {
    if (HasCpuIsa(isa)) return isa;
  }
  return CpuIsa::kPortable;
}

absl::StatusOr<CpuIsa> ChooseCpuIsa(std::optional<CpuIsa> wanted) {
  const absl::StatusOr<CpuIsa> isa =
      wanted.has_value() ? *wanted : IsaOfEnvironment();
  if (isa.ok() && !HasCpuIsa(*isa)) {
    return absl::NotFoundError(absl::StrCat(
        "this CPU does not run the '", NameOf(*isa),
        "' code asked for; its best is '", NameOf(BestCpuIsa()), "'"));
  }
  return isa;
}

}  // namespace rowhouse::kernels
