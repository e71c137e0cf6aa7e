#ifndef ROWHOUSE_KERNELS_CPU_ROW_ADAM_H_
#define ROWHOUSE_KERNELS_CPU_ROW_ADAM_H_

#include <cstdint>
#include <span>

#include "kernels/cpu/executor.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::ApplyRowAdamEvent`. Adds to `report`.
void ApplyRowAdamEvent(Executor& executor, const RowTable& table,
                       const RowAdamEvent& event, EventReport& report);

/// See `Backend::BringCurrent`.
void BringCurrent(Executor& executor, const RowTable& table,
                  const Beta2History& history, std::span<const int64_t> slots);

/// See `Backend::MergedStatistics`.
void MergedStatistics(Executor& executor, std::span<const GradientPart> parts,
                      int64_t dim, DType gradient_dtype,
                      GradientStatistics& statistics);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_ROW_ADAM_H_
