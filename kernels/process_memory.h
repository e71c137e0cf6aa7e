#ifndef ROWHOUSE_KERNELS_PROCESS_MEMORY_H_
#define ROWHOUSE_KERNELS_PROCESS_MEMORY_H_

namespace rowhouse::kernels {

/// Makes this process keep what it frees, up to 2 GiB, and take blocks of up to
/// 1 GiB from it: messages are otherwise mapped and faulted in anew for each
/// call. For `main`, before threads start.
void KeepFreedMemory();

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_PROCESS_MEMORY_H_
