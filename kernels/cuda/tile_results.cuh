#ifndef ROWHOUSE_KERNELS_CUDA_TILE_RESULTS_CUH_
#define ROWHOUSE_KERNELS_CUDA_TILE_RESULTS_CUH_

/// What a warp group makes of a tile's accumulators: statistics, codes, the
/// logit gradient; and how these reach memory.

#include <cstdint>
#include <limits>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_code.cuh"
#include "kernels/cuda/tile_product.cuh"

namespace rowhouse::kernels::cuda::logit_tile {

template <typename T, typename Combine>
__device__ T FoldQuad(T value, Combine combine) {
  value = combine(value, __shfl_xor_sync(kAllLanes, value, 1));
  return combine(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// A token in a tile, as one lane of the quad that holds its logits knows it.
struct TokenAt {
  int64_t token;  // Of the call; the last of the block where there is no more.
  int target;     // Relative to the tile's rows; -1: not among them.
  bool is_there;
};

// A token's logits of a tile, which a quad of lanes holds.
class QuadLogits {
 public:
  // Rows from `left` on are none.
  __device__ QuadLogits(float (&sum)[kSums], int h, int left)
      : sum_(sum), h_(h) {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    if (left < kRows) {
      ForEach([&](float& x, int j) {
        if (j >= left) x = kNone;
      });
    }
    float largest[2] = {kNone, kNone};
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      largest[0] = Larger(at(p, 0), largest[0]);
      largest[1] = Larger(at(p, 1), largest[1]);
    }
    pair_.max = FoldQuad(Larger(largest[0], largest[1]), Larger);
    shift_ = pair_.Shift();
  }

  __device__ float largest() const { return pair_.max; }
  __device__ float Octaves(int p, int e) const {
    return (at(p, e) - shift_) * kLog2E;
  }

  // That of row `row` of the tile, on the lane that has it.
  __device__ float At(int row) const {
    float found = 0.0F;
    ForEach([&](float x, int j) {
      if (j == row) found = x;
    });
    return found;
  }

  // Calls `visit(logit, row of the tile)`.
  template <typename Visit>
  __device__ void ForEach(Visit visit) const {
    const int first = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
#pragma unroll
      for (int e = 0; e < 2; ++e) visit(at(p, e), 8 * p + first + e);
    }
  }

 private:
  __device__ float& at(int p, int e) const { return sum_[4 * p + 2 * h_ + e]; }

  float (&sum_)[kSums];
  const int h_;
  HeadPair pair_;
  float shift_;
};

// Where a warp's results are, and how its lanes store and send them.
class WarpResults {
 public:
  __device__ explicit WarpResults(uint32_t of_group) {
    const int warp = static_cast<int>(threadIdx.x) % kGroup / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    begin_ = of_group + warp * kWarpTokens * kResultPitch;
    // Lanes 0 to 7 point at the pairs of tokens 0 to 7, the next 8 at those 8
    // below; the others at the next pairs.
    stored_ =
        begin_ + (lane % 8 + lane / 8 % 2 * 8) * kResultPitch + lane / 16 * 16;
  }

  // Until what was sent has been read.
  __device__ static void Await() {
    hopper::WaitForReads();
    __syncwarp();
  }

  // `pack(h, p)` of all pairs.
  template <typename Pack>
  __device__ void Store(Pack pack) const {
#pragma unroll
    for (int p = 0; p < kPairs; p += 2) {
      hopper::StorePairs(stored_ + p * 16, pack(0, p), pack(1, p),
                         pack(0, p + 1), pack(1, p + 1));
    }
    __syncwarp();
  }

  // Row `row` of the `in_warp`th token.
  __device__ void Set(int in_warp, int row, uint32_t value) const {
    hopper::StoreShort(begin_ + in_warp * kResultPitch + row * kElementBytes,
                       value);
  }

  // Sends the first `rows` of each token to its place: those of `token_count`
  // tokens, `stride` apart from `to` on.
  __device__ void Send(uint16_t* to, int64_t stride, int token_count,
                       int rows) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    hopper::FenceShared();
    __syncwarp();
    if (lane < min(token_count, kWarpTokens)) {
      hopper::CopyOut(to + lane * stride, begin_ + lane * kResultPitch,
                      rows * kElementBytes);
    }
    hopper::CommitCopies();
  }

 private:
  uint32_t begin_;
  uint32_t stored_;
};

// What a warp makes its results of: 16 tokens' logits in a tile.
struct WarpTile {
  int first;  // Token of the block.
  int row;    // Of the block.
  int left;   // Rows of the block from there on.
  int64_t index;

  __device__ int64_t At(const Tiles& tiles, const TokenAt& at) const {
    return index * tiles.token_count + at.token;
  }
};

__device__ inline void MakeAskedFor(const Tiles& tiles, const WarpTile& tile,
                                    const TokenAt& at, const QuadLogits& logits,
                                    bool writes) {
  const int64_t out = tile.At(tiles, at);
  const int64_t row = tiles.block.rows.first + tile.row;
  if (tiles.statistics.weighted_sum != nullptr) {
    float sum = 0.0F;
    logits.ForEach([&](float x, int j) {
      if (j >= tile.left) return;
      const float weight =
          tiles.class_weights == nullptr ? 1.0F : tiles.class_weights[row + j];
      sum = sum + (weight == 0.0F ? 0.0F : weight * x);
    });
    sum = FoldQuad(sum, Plus);
    if (writes) tiles.statistics.weighted_sum[out] = sum;
  }
  if (tiles.statistics.predicted != nullptr) {
    int found = kRows;
    logits.ForEach([&](float x, int j) {
      if (j < tile.left && x == logits.largest()) found = min(found, j);
    });
    found = FoldQuad(found, [](int a, int b) { return min(a, b); });
    if (writes) {
      tiles.statistics.predicted[out] =
          found < kRows ? static_cast<int32_t>(row) + found : -1;
    }
  }
}

template <Makes kMakes>
__device__ void MakeStatistics(const Tiles& tiles, const WarpTile& tile,
                               const TokenAt (&at)[2],
                               const QuadLogits (&logits)[2],
                               const WarpResults& results) {
  const bool first_lane = threadIdx.x % 4 == 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (at[h].target >= 0 && at[h].is_there) {
      const float x = logits[h].At(at[h].target);
      if (at[h].target % 8 / 2 == static_cast<int>(threadIdx.x) % 4) {
        tiles.target_logits[at[h].token] = x;
        if (KeepsCodes(kMakes)) tiles.kept.target_logits[at[h].token] = x;
      }
    }
    if constexpr (MakesAll(kMakes)) {
      MakeAskedFor(tiles, tile, at[h], logits[h], first_lane && at[h].is_there);
    }
  }
  float sum[2][2] = {};
  const auto add = [&](int h, int p) {
    const float low = logits[h].Octaves(p, 0);
    const float high = logits[h].Octaves(p, 1);
    // A term is within (4 + |octaves|) * 2^-23 of itself.
    sum[h][0] = sum[h][0] + PowerOfTwo(low);
    sum[h][1] = sum[h][1] + PowerOfTwo(high);
    return PackCodes(CodeOf(low), CodeOf(high));
  };
  if constexpr (KeepsCodes(kMakes)) {
    results.Store(add);
  } else {
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      (void)add(0, p);
      (void)add(1, p);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float of_tile = FoldQuad(sum[h][0] + sum[h][1], Plus);
    if (!first_lane || !at[h].is_there) continue;
    const int64_t out = tile.At(tiles, at[h]);
    tiles.statistics.max[out] = logits[h].largest();
    tiles.statistics.sum[out] = of_tile;
  }
}

__device__ inline void MakeGradient(const Tiles& tiles, const TokenAt (&at)[2],
                                    const QuadLogits (&logits)[2],
                                    const WarpResults& results) {
  const TokenScale scale[2] = {tiles.scales[at[0].token],
                               tiles.scales[at[1].token]};
  float of_tile[2];
  float at_target[2] = {0.0F, 0.0F};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool takes_part = scale[h].takes_part != 0.0F;
    of_tile[h] = takes_part ? OfLargest(scale[h], logits[h].largest()) : 0.0F;
    if (takes_part && at[h].target >= 0) {
      at_target[h] = AtTarget(scale[h], logits[h].At(at[h].target));
    }
  }
  results.Store([&](int h, int p) {
    return NarrowPair(Rounded(logits[h].Octaves(p, 0)) * of_tile[h],
                      Rounded(logits[h].Octaves(p, 1)) * of_tile[h]);
  });
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (at[h].target >= 0 && at[h].target % 8 / 2 == lane % 4) {
      results.Set(lane / 4 + 8 * h, at[h].target,
                  NarrowPair(at_target[h], 0.0F));
    }
  }
}

template <Makes kMakes>
__device__ void MakeOf(const Tiles& tiles, const TileAt& tile,
                       const WarpResults& results, float (&sum)[2][kSums]) {
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  const auto count = static_cast<int>(tiles.block.tokens.count);
  const auto rows = static_cast<int>(tiles.block.rows.count);
  WarpTile of_warp;
  of_warp.row = tile.row;
  of_warp.left = rows - tile.row;
  of_warp.index = tiles.first_tile + tile.row / kRows;
  TokenAt at[2][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      TokenAt& one = at[half][h];
      const int in_block = tile.token + half * kHalfTokens +
                           thread / kWarpSize * kWarpTokens + h * 8 +
                           thread % kWarpSize / 4;
      one.is_there = in_block < count;
      one.token = tiles.block.tokens.first + min(in_block, count - 1);
      const int64_t target =
          tiles.targets[one.token] - tiles.block.rows.first - tile.row;
      one.target = IsAmong(target, 0, min(kRows, of_warp.left))
                       ? static_cast<int>(target)
                       : -1;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    of_warp.first =
        tile.token + half * kHalfTokens + thread / kWarpSize * kWarpTokens;
    const QuadLogits logits[2] = {{sum[half], 0, of_warp.left},
                                  {sum[half], 1, of_warp.left}};
    if constexpr (kMakes == Makes::kGradient || KeepsCodes(kMakes)) {
      WarpResults::Await();
    }
    if constexpr (kMakes == Makes::kGradient) {
      MakeGradient(tiles, at[half], logits, results);
    } else {
      MakeStatistics<kMakes>(tiles, of_warp, at[half], logits, results);
    }
    if constexpr (kMakes == Makes::kGradient || KeepsCodes(kMakes)) {
      const int64_t stride = HeadKept::Stride(rows);
      uint16_t* const to =
          kMakes == Makes::kGradient ? tiles.gradient : tiles.kept.codes;
      results.Send(to + of_warp.first * stride + tile.row, stride,
                   count - of_warp.first,
                   min(kRows, static_cast<int>(stride) - tile.row));
    }
  }
}

}  // namespace rowhouse::kernels::cuda::logit_tile

#endif  // ROWHOUSE_KERNELS_CUDA_TILE_RESULTS_CUH_
