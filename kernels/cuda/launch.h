#ifndef ROWHOUSE_KERNELS_CUDA_LAUNCH_H_
#define ROWHOUSE_KERNELS_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

namespace rowhouse::kernels::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr int kThreads = 256;  ///< A block, where no other is said.
inline constexpr int kWarps = kThreads / kWarpSize;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// Blocks for `count` items of work, `per_block` each; kernels stride over what
/// is beyond.
inline unsigned BlocksFor(int64_t count, int64_t per_block) {
  constexpr int64_t kMost = int64_t{1} << 30;
  return static_cast<unsigned>(
      std::clamp<int64_t>((count + per_block - 1) / per_block, 1, kMost));
}

/// Blocks that fill every device once or twice: for kernels that stride over
/// all of their work and keep something a block.
inline unsigned FewBlocksFor(int64_t count, int64_t per_block) {
  return std::min(BlocksFor(count, per_block), 1056U);
}

/// Whether 8 columns of rows `stride` elements apart are loads of 16 bytes, if
/// rows have a multiple of 8 columns.
inline bool IsVectorRow(const void* rows, int64_t stride) {
  constexpr int64_t kColumnsAtOnce = 8;
  return reinterpret_cast<uintptr_t>(rows) % 16 == 0 &&
         stride % kColumnsAtOnce == 0;
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_LAUNCH_H_
