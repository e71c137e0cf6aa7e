#ifndef ROWHOUSE_BENCH_SUPPORT_RUN_H_
#define ROWHOUSE_BENCH_SUPPORT_RUN_H_

#include <cstdint>

#include "kernels/backend.h"

namespace rowhouse::bench {

/// How this process was told to run.
struct RunOptions {
  kernels::BackendOptions backend;
  /// GPU of server processes; below 0: that of `backend`.
  int server_device = -1;
  bool quick = false;  ///< Tiny sizes: shows that cases run, no figures.
};

/// Valid once `Main` has read the flags; so in every benchmark.
const RunOptions& TheRun();

inline bool OnGpu() {
  return TheRun().backend.kind == kernels::BackendKind::kCuda;
}

inline int ServerDevice() {
  const RunOptions& run = TheRun();
  return run.server_device < 0 ? run.backend.device_index : run.server_device;
}

/// The backend under test. Lives as long as the process.
kernels::Backend& TheBackend();

/// Threads that the CPU backend works with.
int ThreadCount();

/// `full`, or `quick` in a quick run.
inline int64_t Size(int64_t full, int64_t quick) {
  return TheRun().quick ? quick : full;
}

/// Reads `--backend=cpu|cuda`, `--device=N`, `--server-device=N`,
/// `--threads=N` and `--quick`, leaves other flags to Google Benchmark, and
/// runs what is registered. Returns the exit code: 0; 1 when nothing ran or a
/// case failed; 2 for bad flags or a backend that is not there.
int Main(int argc, char** argv);

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_RUN_H_
