#ifndef ROWHOUSE_KERNELS_CUDA_NGRAM_WANT_H_
#define ROWHOUSE_KERNELS_CUDA_NGRAM_WANT_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/cuda/scratch.h"

namespace rowhouse::kernels::cuda {

/// The rows of a table as bits, in tiles of kTileRows, and how many of each
/// tile's are set.
struct RowBits {
  static constexpr int64_t kTileRows = 131072;

  uint32_t* words = nullptr;   ///< [tile_count * kTileRows / 32].
  uint32_t* counts = nullptr;  ///< [tile_count], right behind the words.
  int64_t tile_count = 0;

  static RowBits Cut(ScratchCutter& cutter, int64_t table_row_count);

  int64_t size_bytes() const {
    return tile_count * (kTileRows / 8 + int64_t{sizeof(uint32_t)});
  }
};

/// Enqueues the setting of the bits of a step's rows, and their counting. Clear
/// all of `bits` before the first step.
///
/// Reads 12 bytes a token, and changes 8 at random for each row that is new.
cudaError_t LaunchMarkNgramRows(std::span<const int32_t> tokens,
                                int64_t table_row_count, const RowBits& bits,
                                cudaStream_t stream);

/// Enqueues `want` and `*want_count` of `Backend::NgramWantList`, from the bits
/// of all steps. Reads the bits once, writes 8 bytes a row that is set.
cudaError_t LaunchListRows(const RowBits& bits, std::span<int64_t> want,
                           int64_t* want_count, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NGRAM_WANT_H_
