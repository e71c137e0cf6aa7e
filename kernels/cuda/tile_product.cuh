#ifndef ROWHOUSE_KERNELS_CUDA_TILE_PRODUCT_CUH_
#define ROWHOUSE_KERNELS_CUDA_TILE_PRODUCT_CUH_

/// How the tiles of logit_tiles.h come to be: which block of threads has which,
/// what their stages of operands are, who copies those and who multiplies them.

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/logit_tiles.h"

namespace rowhouse::kernels::cuda::logit_tile {

inline constexpr int kTokens = 128;  // Of a tile.
inline constexpr int kRows = 160;
static_assert(kRows == HeadKept::kTileRows);
inline constexpr int kDepth = 64;  // Elements of a row in one stage.
inline constexpr int kStages = 5;
inline constexpr int kBlocks =
    2;  // Of a cluster, one below the other in tokens.
inline constexpr int kGroup = 128;  // Threads of a warp group.
inline constexpr int kGroups = 3;   // One copies, two multiply.

inline constexpr int kHalfTokens = 64;  // Of one instruction.
inline constexpr int kElementBytes = 2;
inline constexpr int kHiddenBytes = kTokens * kDepth * kElementBytes;
inline constexpr int kWeightBytes = kRows * kDepth * kElementBytes;
inline constexpr int kHalfBytes = kHalfTokens * kDepth * kElementBytes;
inline constexpr int kStageBytes = kHiddenBytes + kWeightBytes;
inline constexpr int kAlignment = 1024;  // Of swizzled tiles.

// Half of a tile's results, on their way from a warp group to memory; a warp
// has 16 tokens. The padding sets 8 tokens' 16 bytes into banks of their own.
inline constexpr int kResultPitch = kRows * kElementBytes + 16;
inline constexpr int kWarpTokens = 16;
inline constexpr int kResultBytes = kHalfTokens * kResultPitch;  // Of a group.
inline constexpr int kSharedBytes =
    kAlignment + kStages * kStageBytes + 2 * kResultBytes + 2 * kStages * 8;

// Accumulators of a thread: for each half of the tokens, rows 8 * p + 2 * (lane
// % 4) + e of token lane / 4 and the one 8 below at `4 * p + 2 * h + e`.
inline constexpr int kSums = kRows / 2;
inline constexpr int kPairs = kRows / 8;  // Of a token, a thread.

enum class Makes : uint8_t {
  kStatistics,
  kAllStatistics,  // What is asked for beside maximum and sum, too.
  kCodes,
  kAllAndCodes,
  kGradient,
};
constexpr bool KeepsCodes(Makes makes) {
  return makes == Makes::kCodes || makes == Makes::kAllAndCodes;
}
constexpr bool MakesAll(Makes makes) {
  return makes == Makes::kAllStatistics || makes == Makes::kAllAndCodes;
}

struct Tiles {
  PassBlock block;
  int64_t token_count;  // Of the call.
  int64_t first_tile;
  int depth_steps;
  int of_tokens;  // Clusters' tiles.
  int of_rows;
  const int64_t* targets;
  const float* class_weights;
  TileStatistics statistics;
  float* target_logits;
  KeptBlock kept;
  const TokenScale* scales;
  uint16_t* gradient;

  __device__ int count() const { return of_tokens * of_rows; }
};

struct TileAt {
  int token;  // Of the block.
  int row;
};

// Bands of 16 tiles of rows, through which tokens run, so that what the
// clusters read at a time stays in the L2 cache.
__device__ inline TileAt Locate(const Tiles& tiles, int index,
                                int block_in_cluster) {
  constexpr int kBand = 16;
  const int of_band = tiles.of_tokens * kBand;
  const int band = index / of_band;
  const int in_band = index - band * of_band;
  const int width = min(kBand, tiles.of_rows - band * kBand);
  const int down = in_band / width;
  return {(down * kBlocks + block_in_cluster) * kTokens,
          (band * kBand + in_band - down * width) * kRows};
}

// Stages of tiles in shared memory, and who may use them: `full` once the
// copies are there, `empty` once the groups of both blocks that multiplied are
// done.
struct Stages {
  uint32_t data;
  uint32_t full;
  uint32_t empty;

  __device__ explicit Stages(uint8_t* shared) {
    const uint32_t begin = hopper::SharedAddress(shared);
    data = hopper::Opaque((begin + kAlignment - 1) / kAlignment * kAlignment);
    full = data + kStages * kStageBytes + 2 * kResultBytes;
    empty = full + kStages * 8;
  }
  // Where a multiplying warp group's results are.
  __device__ uint32_t Results(int group) const {
    return data + kStages * kStageBytes + group * kResultBytes;
  }
  __device__ uint32_t Hidden(int stage) const {
    return data + stage * kStageBytes;
  }
  __device__ uint32_t Weights(int stage) const {
    return Hidden(stage) + kHiddenBytes;
  }
};

// The use of stage after stage.
struct Turn {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void Skip(int steps) {
    const int at = stage + steps;
    stage = at % kStages;
    parity ^= static_cast<uint32_t>(at / kStages) & 1U;
  }
};

__device__ inline void CopyTiles(const CUtensorMap& hidden,
                                 const CUtensorMap& weights, const Tiles& tiles,
                                 const Stages& stages) {
  constexpr uint16_t kAllBlocks = (1 << kBlocks) - 1;
  constexpr int kShare = kRows / kBlocks;  // Of the weights, a block's.
  const auto block = static_cast<int>(hopper::BlockInCluster());
  const int clusters = static_cast<int>(gridDim.x) / kBlocks;
  Turn turn;
  for (int i = static_cast<int>(blockIdx.x) / kBlocks; i < tiles.count();
       i += clusters) {
    const TileAt at = Locate(tiles, i, block);
    const int token = static_cast<int>(tiles.block.tokens.first) + at.token;
    const int row =
        static_cast<int>(tiles.block.rows.first) + at.row + block * kShare;
    for (int step = 0; step < tiles.depth_steps; ++step) {
      hopper::WaitFor(stages.empty + 8 * turn.stage, turn.parity ^ 1);
      const uint32_t full = stages.full + 8 * turn.stage;
      hopper::ExpectBytes(full, kStageBytes);
      hopper::CopyTile(stages.Hidden(turn.stage), hidden, step * kDepth, token,
                       full);
      hopper::CopyTileTo(kAllBlocks,
                         stages.Weights(turn.stage) +
                             block * (kShare * kDepth * kElementBytes),
                         weights, step * kDepth, row, full);
      turn.Next();
    }
  }
}

// Multiplies a tile's stages; `sum` is there on return.
__device__ inline void MultiplyTile(const Stages& stages, int depth_steps,
                                    Turn& turn, float (&sum)[2][kSums]) {
  constexpr int kDepthBytes = 16 * kElementBytes;  // Of one instruction.
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  const auto release = [&](int stage) {
    if (thread < kBlocks) {
      hopper::ArriveAt(stages.empty + 8 * stage, static_cast<uint32_t>(thread));
    }
  };
  const uint64_t first = hopper::OperandAt(stages.data);
  int before = -1;
  for (int step = 0; step < depth_steps; ++step) {
    hopper::WaitFor(stages.full + 8 * turn.stage, turn.parity);
    const uint64_t hidden = first + hopper::OperandStep(kStageBytes) *
                                        static_cast<uint64_t>(turn.stage);
    hopper::FenceProducts();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const uint64_t at = hidden + hopper::OperandStep(k * kDepthBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        hopper::Multiply64x160(
            sum[half], at + hopper::OperandStep(half * kHalfBytes),
            at + hopper::OperandStep(kHiddenBytes), step + k > 0 ? 1 : 0);
      }
    }
    hopper::CommitProducts();
    if (before >= 0) {
      hopper::WaitForProducts<1>();
      release(before);
    }
    before = turn.stage;
    turn.Next();
  }
  hopper::WaitForProducts<0>();
  release(before);
}

}  // namespace rowhouse::kernels::cuda::logit_tile

#endif  // ROWHOUSE_KERNELS_CUDA_TILE_PRODUCT_CUH_
