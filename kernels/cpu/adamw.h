#ifndef ROWHOUSE_KERNELS_CPU_ADAMW_H_
#define ROWHOUSE_KERNELS_CPU_ADAMW_H_

#include "kernels/cpu/executor.h"
#include "kernels/dense_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::ApplyAdamW`. Adds to `report`.
void ApplyAdamW(Executor& executor, const DenseTable& table,
                const AdamWFactors& factors, NonFinitePolicy policy,
                EventReport& report);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_ADAMW_H_
