#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_code.cuh"
#include "kernels/cuda/merge_tiles.h"

namespace rowhouse::kernels::cuda {
namespace {

// 32 tokens a block, 8 groups of tiles.
constexpr int kMergedTokens = kWarpSize;
constexpr int kMergeGroups = 8;

__global__ void __launch_bounds__(kMergedTokens* kMergeGroups)
    MergeTilesKernel(TileStatistics tiles, int64_t tile_count,
                     int64_t token_count, HeadStatistics statistics) {
  __shared__ float of_group[kMergeGroups][kMergedTokens];
  const int lane = static_cast<int>(threadIdx.x) % kMergedTokens;
  const int group = static_cast<int>(threadIdx.x) / kMergedTokens;
  const int64_t token =
      min(int64_t{blockIdx.x} * kMergedTokens + lane, token_count - 1);
  const auto fold = [&](float value, auto combine) {
    __syncthreads();
    of_group[group][lane] = value;
    __syncthreads();
    value = of_group[0][lane];
    for (int g = 1; g < kMergeGroups; ++g) {
      value = combine(value, of_group[g][lane]);
    }
    return value;
  };
  HeadPair pair;
  for (int64_t t = group; t < tile_count; t += kMergeGroups) {
    pair.max = Larger(tiles.max[t * token_count + token], pair.max);
  }
  pair.max = fold(pair.max, Larger);
  const float shift = pair.Shift();
  for (int64_t t = group; t < tile_count; t += kMergeGroups) {
    const int64_t at = t * token_count + token;
    pair.sum = pair.sum + tiles.sum[at] * Exp(tiles.max[at] - shift);
  }
  pair.sum = fold(pair.sum, Plus);
  float weighted = 0.0F;
  if (tiles.weighted_sum != nullptr) {
    for (int64_t t = group; t < tile_count; t += kMergeGroups) {
      weighted = weighted + tiles.weighted_sum[t * token_count + token];
    }
    weighted = fold(weighted, Plus);
  }
  if (group != 0) return;
  statistics.max_logits[token] = pair.max;
  statistics.exp_sums[token] = pair.sum;
  if (tiles.weighted_sum != nullptr) {
    statistics.weighted_logit_sums[token] = weighted;
  }
  if (tiles.predicted == nullptr) return;
  int64_t predicted = -1;
  for (int64_t t = 0; t < tile_count && predicted < 0; ++t) {
    const int64_t at = t * token_count + token;
    if (tiles.max[at] == pair.max) predicted = tiles.predicted[at];
  }
  statistics.predicted[token] = predicted;
}

}  // namespace

cudaError_t LaunchMergeTiles(const TileStatistics& tiles, int64_t tile_count,
                             int64_t token_count,
                             const HeadStatistics& statistics,
                             cudaStream_t stream) {
  MergeTilesKernel<<<BlocksFor(token_count, kMergedTokens),
                     kMergedTokens * kMergeGroups, 0, stream>>>(
      tiles, tile_count, token_count, statistics);
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
