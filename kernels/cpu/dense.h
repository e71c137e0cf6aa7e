#ifndef ROWHOUSE_KERNELS_CPU_DENSE_H_
#define ROWHOUSE_KERNELS_CPU_DENSE_H_

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/executor.h"
#include "kernels/dense_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::InitializeDense`.
void InitializeDense(Executor& executor, const DenseTable& table,
                     const Initializer& initializer, bool fresh);

/// See `Backend::WriteDenseRows`.
void WriteDenseRows(Executor& executor, const DenseTable& table,
                    int64_t first_slot, int64_t row_count, const void* rows);

/// See `Backend::ClearMainGrad`.
void ClearMainGrad(Executor& executor, const DenseTable& table);

/// See `Backend::DenseStatistics`.
void DenseStatistics(Executor& executor, const DenseTable& table,
                     GradientStatistics& statistics);

/// See `Backend::DenseDigest`.
uint64_t DenseDigest(Executor& executor, const DenseTable& table);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_DENSE_H_
