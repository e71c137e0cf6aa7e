#include "kernels/cpu/floats.h"

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/rows.h"
#include "kernels/element.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <typename Element>
void NarrowTo(Executor& executor, const float* from, int64_t count,
              Element* to) {
  VectorFor(executor, count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = Narrow<Element>(from[i]);
  });
}

}  // namespace

void AddFloats(Executor& executor, const float* from, float* to,
               int64_t count) {
  VectorFor(executor, count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  });
}

void NarrowFloats(Executor& executor, const float* from, int64_t count,
                  DType dtype, void* to) {
  switch (dtype) {
    case DType::kBf16:
      return NarrowTo(executor, from, count, static_cast<uint16_t*>(to));
    case DType::kFp16:
      return NarrowTo(executor, from, count, static_cast<Fp16*>(to));
    case DType::kFp32:  // All bits, of a NaN too.
      return CopyBytes(executor, from, to, count * SizeOf(DType::kFp32));
  }
}

}  // namespace rowhouse::kernels::cpu
