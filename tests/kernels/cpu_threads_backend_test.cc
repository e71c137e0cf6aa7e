#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "tests/kernels/backend_conformance.h"

namespace rowhouse::kernels {
namespace {

BackendCase CpuWithThreads(int thread_count) {
  return {"Threads" + std::to_string(thread_count), [thread_count] {
            return cpu::MakeCpuBackend(cpu::MakeThreadExecutor(thread_count));
          }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cpu, BackendTest,
                         ::testing::Values(CpuWithThreads(1), CpuWithThreads(2),
                                           CpuWithThreads(8)),
                         NameOfCase);

}  // namespace rowhouse::kernels
