#ifndef ROWHOUSE_KERNELS_CUDA_LOGIT_TILES_H_
#define ROWHOUSE_KERNELS_CUDA_LOGIT_TILES_H_

/// A product of hidden rows and weights by tensor cores whose logits never
/// leave the multiprocessor: what is asked of a tile (its statistics, its
/// codes, its logit gradient) is formed from the accumulators. For devices of
/// compute capability 9.0. All pointers are device memory.
///
/// Two warp groups take turns, a tile each: while one multiplies, the other
/// makes its results of the tile before. Two blocks of threads, a cluster,
/// share what they read of the weights.
///
/// A logit is the sum over the row's elements in order, 16 at a time by one
/// instruction of the tensor core, in fp32.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/logit_pass.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Operands as the copies of tiles know them; bf16 rows of `dim` elements, a
/// multiple of 8, at multiples of 16 bytes.
struct TileOperands {
  CUtensorMap hidden;
  CUtensorMap weights;
  int64_t dim = 0;
};

/// Per token and tile of rows, arrays of [tile count of the slice, token_count]
/// where not null.
struct TileStatistics {
  float* max = nullptr;
  float* sum = nullptr;           ///< Of e^(logit - max).
  float* weighted_sum = nullptr;  ///< `HeadStatistics::weighted_logit_sums`.
  int32_t* predicted = nullptr;   ///< Row of the slice, or -1.
};

/// What a call's tiles of rows are counted by: those of a block of rows begin
/// with it.
struct TileCut {
  BlockCut rows;  ///< Of the slice.

  int64_t of_block() const { return TilesOf(rows.largest()); }
  int64_t count() const {
    if (rows.count() == 0) return 0;
    return (rows.count() - 1) * of_block() +
           TilesOf(rows[rows.count() - 1].count);
  }
  int64_t first(const BlockRange& block) const {
    return block.first / rows.size * of_block();
  }

  static int64_t TilesOf(int64_t row_count) {
    return (row_count + HeadKept::kTileRows - 1) / HeadKept::kTileRows;
  }
};

/// Whether the current device has what it takes.
bool HasLogitTiles();

/// Describes the operands of a call; false where they can't be.
bool DescribeOperands(const HeadSlice& slice, const HeadInputs& inputs,
                      TileOperands& operands);

/// Writes the statistics of a block's tiles, and of tokens whose target is
/// among its rows the target's logit, to `target_logits`. Keeps codes where
/// `kept.codes` is not null; its largest logits are `tiles.max`.
///
/// Bytes: the operands, and 2 a logit where codes are kept.
cudaError_t LaunchTileStatistics(const TileOperands& operands,
                                 const PassBlock& block, const TileCut& cut,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const TileStatistics& tiles,
                                 float* target_logits, const KeptBlock& kept,
                                 cudaStream_t stream);

/// The logit gradient of a block, as `LaunchPassGradient` writes it but for the
/// largest logit, which is that of a tile.
///
/// Bytes: the operands, and 2 a logit.
cudaError_t LaunchTileGradient(const TileOperands& operands,
                               const PassBlock& block, const TileCut& cut,
                               const HeadInputs& inputs,
                               const TokenScale* scales, uint16_t* gradient,
                               cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_LOGIT_TILES_H_
