#ifndef ROWHOUSE_KERNELS_CPU_MEMORY_H_
#define ROWHOUSE_KERNELS_CPU_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"

namespace rowhouse::kernels::cpu {

/// Maps zeroed memory whose pages come when first touched; 2 MiB and more are
/// aligned to, and made of, huge pages where the system has them.
///
/// Thread-safe.
///
/// Errors:
///   kResourceExhausted  the system refused; names the bytes.
absl::StatusOr<Buffer> AllocateMemory(int64_t size_bytes);

/// Memory of the machine. Thread-safe.
MemoryState MachineMemory();

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_MEMORY_H_
