#ifndef ROWHOUSE_KERNELS_CUDA_COLUMNS_CUH_
#define ROWHOUSE_KERNELS_CUDA_COLUMNS_CUH_

/// Rows in a warp's registers: lane `l` holds columns `256k + 8l .. +7` of each
/// group `k` of 256, which is one load of 16 bytes at bf16 and what the order
/// of a row's sum of squares wants (arithmetic.h).

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/launch.h"
#include "kernels/element.h"

namespace rowhouse::kernels::cuda {

inline constexpr int kLaneColumns = 8;
inline constexpr int kGroupColumns = kWarpSize * kLaneColumns;
static_assert(kGroupColumns == kSquarePartials);

__device__ inline bool IsFiniteElement(uint16_t bits) {
  return (bits & 0x7f80U) != 0x7f80U;
}
__device__ inline bool IsFiniteElement(float x) { return IsFinite(x); }

/// A lane's columns of one group.
template <typename T>
struct alignas(16) Columns {
  T x[kLaneColumns];
};

/// Loads `row[column .. +7]`, past `dim` zeros. `kVector`: rows begin at
/// multiples of 16 bytes and `dim` is one of 8; that memory is read or written
/// once and need not stay in the cache.
template <bool kVector, typename T>
__device__ Columns<T> LoadColumns(const T* row, int64_t column, int64_t dim) {
  Columns<T> columns;
  if constexpr (kVector) {
    constexpr int kPacks = sizeof(columns) / sizeof(uint4);
    const auto* from = reinterpret_cast<const uint4*>(row + column);
    auto* to = reinterpret_cast<uint4*>(&columns);
    for (int i = 0; i < kPacks; ++i) {
      to[i] = column < dim ? __ldcs(from + i) : make_uint4(0, 0, 0, 0);
    }
  } else {
    for (int i = 0; i < kLaneColumns; ++i) {
      columns.x[i] = column + i < dim ? row[column + i] : T{};
    }
  }
  return columns;
}

template <bool kVector, typename T>
__device__ void StoreColumns(const Columns<T>& columns, T* row, int64_t column,
                             int64_t dim) {
  if constexpr (kVector) {
    constexpr int kPacks = sizeof(columns) / sizeof(uint4);
    const auto* from = reinterpret_cast<const uint4*>(&columns);
    auto* to = reinterpret_cast<uint4*>(row + column);
    for (int i = 0; i < kPacks; ++i) {
      if (column < dim) __stcs(to + i, from[i]);
    }
  } else {
    for (int i = 0; i < kLaneColumns; ++i) {
      if (column + i < dim) row[column + i] = columns.x[i];
    }
  }
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_COLUMNS_CUH_
