#ifndef ROWHOUSE_BENCH_SUPPORT_CEILING_H_
#define ROWHOUSE_BENCH_SUPPORT_CEILING_H_

namespace rowhouse::bench {

// What this machine can do at most, measured in this process (`SampledRate`).

/// Bytes read and written a second by a copy between two buffers of 512 MiB,
/// far beyond the caches: memcpy by as many threads as the CPU backend has,
/// each on its own share; on another backend its own copy within the device.
double CopyBytesPerSecond();

/// FLOPs a second of OpenBLAS's bare `sgemm` on the shapes of the LM head's
/// three products (logits, hidden gradient, weight gradient), one call at a
/// time on each thread of the CPU backend. 0 on another backend: not known.
double GemmFlopsPerSecond();

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_CEILING_H_
