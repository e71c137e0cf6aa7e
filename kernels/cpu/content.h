#ifndef ROWHOUSE_KERNELS_CPU_CONTENT_H_
#define ROWHOUSE_KERNELS_CPU_CONTENT_H_

#include <cstdint>

#include "kernels/cpu/executor.h"
#include "kernels/hash.h"
#include "kernels/host_pieces.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::LandRows`. `from` and `to` need no alignment.
void LandRows(Executor& executor, const HostPieces& from, void* to,
              int64_t row_count, int64_t dim, DType dtype,
              int64_t first_position, ContentSum& content, RowScan& scan);

/// See `Backend::Digest`.
uint64_t Digest(Executor& executor, const RowTable& table,
                const Beta2History& history);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_CONTENT_H_
