#ifndef ROWHOUSE_KERNELS_CPU_CPU_BACKEND_H_
#define ROWHOUSE_KERNELS_CPU_CPU_BACKEND_H_

#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/executor.h"

namespace rowhouse::kernels::cpu {

/// The CPU backend on `executor`: calls are done when they return.
std::unique_ptr<Backend> MakeCpuBackend(std::unique_ptr<Executor> executor);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_CPU_BACKEND_H_
