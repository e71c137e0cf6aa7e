#include "kernels/cpu/stream.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)

#include <immintrin.h>

namespace rowhouse::kernels::cpu {

bool CanStream(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 || isa == CpuIsa::kAmx;
}

[[gnu::target("avx512f")]] void StreamLines(const void* from, void* to,
                                            int64_t size_bytes) {
  constexpr int64_t kLineBytes = 64;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  for (int64_t at = 0; at < size_bytes; at += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target + at),
                        _mm512_loadu_si512(source + at));
  }
}

void StreamBytes(const void* from, void* to, int64_t size_bytes) {
  constexpr uintptr_t kLineBytes = 64;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  const auto size = static_cast<size_t>(size_bytes);
  const size_t head =
      std::min<size_t>(size, -reinterpret_cast<uintptr_t>(target) % kLineBytes);
  const size_t lines = (size - head) / kLineBytes * kLineBytes;
  std::memcpy(target, source, head);
  StreamLines(source + head, target + head, static_cast<int64_t>(lines));
  std::memcpy(target + head + lines, source + head + lines,
              size - head - lines);
}

void EndStream() { _mm_sfence(); }

}  // namespace rowhouse::kernels::cpu

#else

namespace rowhouse::kernels::cpu {

bool CanStream(CpuIsa) { return false; }
void StreamLines(const void*, void*, int64_t) { assert(false); }
void StreamBytes(const void*, void*, int64_t) { assert(false); }
void EndStream() {}

}  // namespace rowhouse::kernels::cpu

#endif
