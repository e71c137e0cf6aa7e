#include "kernels/backend.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"

namespace rowhouse::kernels {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(
    const BackendOptions& options) {
  switch (options.kind) {
    case BackendKind::kCpu: {
      if (options.thread_count < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("thread_count is ", options.thread_count,
                         "; it must be at least 0 (0: one per core)"));
      }
      const absl::StatusOr<CpuIsa> isa = ChooseCpuIsa(options.cpu_isa);
      if (!isa.ok()) return isa.status();
      return cpu::MakeCpuBackend(
          cpu::MakeTbbExecutor(options.thread_count, *isa));
    }
    case BackendKind::kCuda:
      return cuda::MakeCudaBackend(options.device_index);
  }
  return absl::InvalidArgumentError("unknown backend kind");
}

}  // namespace rowhouse::kernels
