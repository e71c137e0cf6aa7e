#ifndef ROWHOUSE_BENCH_KERNELS_CEILING_H_
#define ROWHOUSE_BENCH_KERNELS_CEILING_H_

#include <cstdint>

#include "benchmark/benchmark.h"

namespace rowhouse::kernels {

/// Bytes a second, read and written together, of `std::memcpy` from one buffer
/// of 512 MiB to another, each of as many threads as there are cores copying
/// its share in one call: the median of some copies. Measured at the first
/// call.
double MemcpyRate();

/// States the bytes that the iterations had to move: their rate, and as
/// `of_memcpy` the share of `MemcpyRate` that they reached.
void SetBytesMoved(benchmark::State& state, int64_t bytes);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_BENCH_KERNELS_CEILING_H_
