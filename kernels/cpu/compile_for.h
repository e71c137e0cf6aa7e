#ifndef ROWHOUSE_KERNELS_CPU_COMPILE_FOR_H_
#define ROWHOUSE_KERNELS_CPU_COMPILE_FOR_H_

/// One source, compiled for several instruction sets, chosen at run time.
///
/// The whole project is compiled for the oldest CPU of its kind. Wider
/// instructions stand in the functions `InAvx2` and `InAvx512` alone: each has
/// its target as an attribute, and `flatten` pulls what its body calls into it.
/// What is not pulled in stays a function for any CPU, so no template or inline
/// function that two translation units share ever holds wide code, as it would
/// in files compiled with -mavx2 (the linker keeps one copy for all).
/// tests/layout/wide_code.py looks at the machine code.
///
/// The bits stay the same: the compiler may form vectors of independent
/// elements only, and contracts nothing (-ffp-contract=off). All but the
/// portable code may count on fused multiply-add where a source asks for it.

#include <cstdint>

#include "kernels/cpu/executor.h"
#include "kernels/cpu_isa.h"

namespace rowhouse::kernels::cpu {

#if defined(__x86_64__)

inline bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

inline bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

template <typename Body, typename... Arguments>
[[gnu::target("avx2,fma"), gnu::flatten]] void InAvx2(const Body& body,
                                                      Arguments... arguments) {
  body(arguments...);
}

template <typename Body, typename... Arguments>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::flatten]] void
InAvx512(const Body& body, Arguments... arguments) {
  body(arguments...);
}

#else  // Other CPUs have the portable code.

inline bool HasAvx2() { return false; }
inline bool HasAvx512() { return false; }

template <typename Body, typename... Arguments>
void InAvx2(const Body& body, Arguments... arguments) {
  body(arguments...);
}

template <typename Body, typename... Arguments>
void InAvx512(const Body& body, Arguments... arguments) {
  body(arguments...);
}

#endif

/// Calls `body(arguments...)`, compiled for `isa`. Call it around loops, not
/// within them.
///
/// REQUIRES: `HasCpuIsa(isa)`.
template <typename Body, typename... Arguments>
void CallFor(CpuIsa isa, const Body& body, Arguments... arguments) {
  switch (isa) {
    case CpuIsa::kPortable:
      return body(arguments...);
    case CpuIsa::kAvx2:
      return InAvx2(body, arguments...);
    case CpuIsa::kAvx512:
    case CpuIsa::kAmx:
      return InAvx512(body, arguments...);
  }
}

/// `executor.ParallelFor` with `body(begin, end)` compiled for the executor's
/// instruction set.
template <typename Body>
void VectorFor(Executor& executor, int64_t count, int64_t grain,
               const Body& body) {
  executor.ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    CallFor(executor.isa(), body, begin, end);
  });
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_COMPILE_FOR_H_
