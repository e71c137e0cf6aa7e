#ifndef ROWHOUSE_BENCH_SERVER_LOOPBACK_H_
#define ROWHOUSE_BENCH_SERVER_LOOPBACK_H_

#include <cstdint>

namespace rowhouse::bench {

// What plain TCP over 127.0.0.1 gives at most, with no protocol on it: two
// threads of this process, blocking sockets, messages of 1 MiB at most.

/// Bytes a second, one way over one connection: 128 MiB at a time
/// (`SampledRate`).
double LoopbackBytesPerSecond();

/// CPU seconds of both ends for one byte of the same, so far.
double LoopbackCpuSecondsPerByte();

/// Median time, in seconds, from sending `request_bytes` until all of
/// `response_bytes` are back.
double LoopbackRoundTripSeconds(int64_t request_bytes, int64_t response_bytes);

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SERVER_LOOPBACK_H_
