#ifndef ROWHOUSE_KERNELS_CPU_STREAM_H_
#define ROWHOUSE_KERNELS_CPU_STREAM_H_

#include <cstdint>

#include "kernels/cpu_isa.h"

namespace rowhouse::kernels::cpu {

/// Whether `StreamLines` writes past the caches on CPUs with `isa`. Narrower
/// stores fill a line in several steps, among which loads come between: no
/// faster than through the caches.
bool CanStream(CpuIsa isa);

/// Copies `size_bytes` without reading the lines of `to` into caches first, for
/// outputs larger than those. Call `EndStream` before others read.
///
/// REQUIRES: `CanStream` of this CPU; `to` is aligned to 64 and `size_bytes` a
/// multiple of it.
void StreamLines(const void* from, void* to, int64_t size_bytes);

/// The same for any alignment and size; the ends go through the caches.
void StreamBytes(const void* from, void* to, int64_t size_bytes);

/// Makes what this thread streamed visible to the threads it hands it to.
void EndStream();

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_STREAM_H_
