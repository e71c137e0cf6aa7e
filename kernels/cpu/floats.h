#ifndef ROWHOUSE_KERNELS_CPU_FLOATS_H_
#define ROWHOUSE_KERNELS_CPU_FLOATS_H_

#include <cstdint>

#include "kernels/cpu/executor.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::AddFloats`.
void AddFloats(Executor& executor, const float* from, float* to, int64_t count);

/// See `Backend::NarrowFloats`.
void NarrowFloats(Executor& executor, const float* from, int64_t count,
                  DType dtype, void* to);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_FLOATS_H_
