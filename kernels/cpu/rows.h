#ifndef ROWHOUSE_KERNELS_CPU_ROWS_H_
#define ROWHOUSE_KERNELS_CPU_ROWS_H_

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/executor.h"
#include "kernels/host_pieces.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::Copy`.
void CopyBytes(Executor& executor, const void* from, void* to,
               int64_t size_bytes);

/// Sets bytes to zero.
void ClearBytes(Executor& executor, void* data, int64_t size_bytes);

/// See `Backend::InitializeRows`.
void InitializeRows(Executor& executor, const RowTable& table,
                    const Initializer& initializer, bool fresh);

/// See `Backend::GatherRows`.
void GatherRows(Executor& executor, const RowTable& table,
                std::span<const int64_t> slots, void* out);

/// See `Backend::GatherRowsTo`.
void GatherRowsTo(Executor& executor, const RowTable& table,
                  std::span<const int64_t> slots,
                  std::span<const int64_t> positions, void* out);

/// See `Backend::PlaceRows`.
void PlaceRows(const HostPieces& rows, int64_t row_bytes,
               std::span<const int64_t> positions, void* out);

/// See `Backend::WriteRows`.
void WriteRows(Executor& executor, const RowTable& table, int64_t first_slot,
               int64_t row_count, const void* rows);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_ROWS_H_
