#ifndef ROWHOUSE_KERNELS_CUDA_MERGE_TILES_H_
#define ROWHOUSE_KERNELS_CUDA_MERGE_TILES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/logit_tiles.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Merges the statistics of all tiles: the maxima; the sums of tiles `g, g + 8,
/// ...` in order for each `g < 8`, and then these in order, all from +0.
cudaError_t LaunchMergeTiles(const TileStatistics& tiles, int64_t tile_count,
                             int64_t token_count,
                             const HeadStatistics& statistics,
                             cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_MERGE_TILES_H_
