#ifndef ROWHOUSE_KERNELS_CPU_BLOCKS_H_
#define ROWHOUSE_KERNELS_CPU_BLOCKS_H_

#include <algorithm>
#include <cstdint>

namespace rowhouse::kernels::cpu {

/// How an executor cuts a loop: into blocks of `size`, the last one shorter.
struct Blocks {
  int64_t size = 0;
  int64_t count = 0;

  /// A few blocks per thread, so that a slow one does not hold up the rest.
  static Blocks Of(int64_t count, int64_t grain, int concurrency) {
    if (count <= 0) return {};
    constexpr int64_t kBlocksPerThread = 8;
    const int64_t wanted = kBlocksPerThread * concurrency;
    const int64_t size =
        std::max({int64_t{1}, grain, (count + wanted - 1) / wanted});
    return {size, (count + size - 1) / size};
  }
};

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_BLOCKS_H_
