#include <algorithm>
#include <limits>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/logit_code.cuh"
#include "kernels/cuda/logit_tiles.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kTokens = 128;  // Of a tile.
constexpr int kRows = 160;
static_assert(kRows == HeadKept::kTileRows);
constexpr int kDepth = 64;  // Elements of a row in one stage.
constexpr int kStages = 5;
constexpr int kBlocks = 2;   // Of a cluster, one below the other in tokens.
constexpr int kGroup = 128;  // Threads of a warp group.
constexpr int kGroups = 3;   // One copies, two multiply.

constexpr int kHalfTokens = 64;  // Of one instruction.
constexpr int kElementBytes = 2;
constexpr int kHiddenBytes = kTokens * kDepth * kElementBytes;
constexpr int kWeightBytes = kRows * kDepth * kElementBytes;
constexpr int kHalfBytes = kHalfTokens * kDepth * kElementBytes;
constexpr int kStageBytes = kHiddenBytes + kWeightBytes;
constexpr int kAlignment = 1024;  // Of swizzled tiles.

// Half of a tile's results, on their way from a warp group to memory; a warp
// has 16 tokens. The padding sets 8 tokens' 16 bytes into banks of their own.
constexpr int kResultPitch = kRows * kElementBytes + 16;
constexpr int kWarpTokens = 16;
constexpr int kResultBytes = kHalfTokens * kResultPitch;  // Of a group.
constexpr int kSharedBytes =
    kAlignment + kStages * kStageBytes + 2 * kResultBytes + 2 * kStages * 8;

// Accumulators of a thread: for each half of the tokens, rows 8 * p + 2 * (lane
// % 4) + e of token lane / 4 and the one 8 below at `4 * p + 2 * h + e`.
constexpr int kSums = kRows / 2;
constexpr int kPairs = kRows / 8;  // Of a token, a thread.

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
__device__ TileAt Locate(const Tiles& tiles, int index, int block_in_cluster) {
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

__device__ void CopyTiles(const CUtensorMap& hidden, const CUtensorMap& weights,
                          const Tiles& tiles, const Stages& stages) {
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
__device__ void MultiplyTile(const Stages& stages, int depth_steps, Turn& turn,
                             float (&sum)[2][kSums]) {
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

template <typename T, typename Combine>
__device__ T FoldQuad(T value, Combine combine) {
  value = combine(value, __shfl_xor_sync(kAllLanes, value, 1));
  return combine(value, __shfl_xor_sync(kAllLanes, value, 2));
}

__device__ float Plus(float a, float b) { return a + b; }

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

__device__ void MakeAskedFor(const Tiles& tiles, const WarpTile& tile,
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

__device__ void MakeGradient(const Tiles& tiles, const TokenAt (&at)[2],
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

template <Makes kMakes>
__device__ void TakeTurns(const Tiles& tiles, const Stages& stages) {
  constexpr int kBoth = 2 * kGroup;
  constexpr int kFirstTurn = 1;  // The named barrier of group 1's turn.
  const int group = static_cast<int>(threadIdx.x) / kGroup - 1;
  const auto block = static_cast<int>(hopper::BlockInCluster());
  const int clusters = static_cast<int>(gridDim.x) / kBlocks;
  Turn turn;
  if (group == 1) {
    hopper::ArriveThreads(kFirstTurn, kBoth);
    turn.Skip(tiles.depth_steps);
  }
  const WarpResults results(stages.Results(group));
  float sum[2][kSums];
  for (int i = static_cast<int>(blockIdx.x) / kBlocks + group * clusters;
       i < tiles.count(); i += 2 * clusters) {
    hopper::SyncThreads(kFirstTurn + group, kBoth);
    MultiplyTile(stages, tiles.depth_steps, turn, sum);
    hopper::ArriveThreads(kFirstTurn + 1 - group, kBoth);
    turn.Skip(tiles.depth_steps);
    MakeOf<kMakes>(tiles, Locate(tiles, i, block), results, sum);
  }
  WarpResults::Await();
}

template <Makes kMakes>
__global__ void __launch_bounds__(kGroups* kGroup, 1)
    TilesKernel(const __grid_constant__ CUtensorMap hidden,
                const __grid_constant__ CUtensorMap weights, Tiles tiles) {
  extern __shared__ uint8_t shared[];
  const Stages stages(shared);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::InitBarrier(stages.full + 8 * stage, 1);
      hopper::InitBarrier(stages.empty + 8 * stage, kBlocks);
    }
    hopper::FenceBarriers();
  }
  hopper::SyncCluster();
  if (threadIdx.x < kGroup) {
    hopper::LowerRegistersTo<24>();
    if (threadIdx.x == 0) CopyTiles(hidden, weights, tiles, stages);
  } else {
    hopper::RaiseRegistersTo<240>();
    TakeTurns<kMakes>(tiles, stages);
  }
  // A block's shared memory is copied to as long as its cluster works.
  __syncwarp();
  hopper::SyncCluster();
}

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

bool Describe(const void* rows, int64_t count, int64_t dim, int box_rows,
              CUtensorMap& map) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = {};
    (void)cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                           12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  if (encode == nullptr) return false;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(dim),
                              static_cast<cuuint64_t>(count)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(dim * kElementBytes)};
  const cuuint32_t box[] = {kDepth, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                const_cast<void*>(rows), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int DivideUp(int64_t count, int64_t by) {
  return static_cast<int>((count + by - 1) / by);
}

Tiles TilesOf(const TileOperands& operands, const PassBlock& block,
              const TileCut& cut, const HeadInputs& inputs) {
  Tiles tiles = {};
  tiles.block = block;
  tiles.token_count = inputs.token_count;
  tiles.first_tile = cut.first(block.rows);
  tiles.depth_steps = DivideUp(operands.dim, kDepth);
  tiles.of_tokens = DivideUp(block.tokens.count, kBlocks * kTokens);
  tiles.of_rows = DivideUp(block.rows.count, kRows);
  tiles.targets = inputs.targets;
  return tiles;
}

template <Makes kMakes>
cudaError_t Launch(const TileOperands& operands, const Tiles& tiles,
                   cudaStream_t stream) {
  const auto kernel = TilesKernel<kMakes>;
  cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kBlocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.blockDim = kGroups * kGroup;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  config.gridDim = kBlocks;
  int most = 0;
  error = cudaOccupancyMaxActiveClusters(&most, kernel, &config);
  if (error != cudaSuccess) return error;
  const int64_t wanted = int64_t{tiles.of_tokens} * tiles.of_rows;
  config.gridDim =
      kBlocks * static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, most));
  return cudaLaunchKernelEx(&config, kernel, operands.hidden, operands.weights,
                            tiles);
}

}  // namespace

bool HasLogitTiles() {
  int device = 0;
  int major = 0;
  int minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                                device) == cudaSuccess &&
         major == 9 && minor == 0;
}

bool DescribeOperands(const HeadSlice& slice, const HeadInputs& inputs,
                      TileOperands& operands) {
  operands.dim = slice.dim;
  return Describe(inputs.hidden, inputs.token_count, slice.dim, kTokens,
                  operands.hidden) &&
         Describe(slice.weights, slice.row_count, slice.dim, kRows / kBlocks,
                  operands.weights);
}

cudaError_t LaunchTileStatistics(const TileOperands& operands,
                                 const PassBlock& block, const TileCut& cut,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const TileStatistics& statistics,
                                 float* target_logits, const KeptBlock& kept,
                                 cudaStream_t stream) {
  Tiles tiles = TilesOf(operands, block, cut, inputs);
  tiles.class_weights = slice.class_weights;
  tiles.statistics = statistics;
  tiles.target_logits = target_logits;
  tiles.kept = kept;
  const bool all =
      statistics.weighted_sum != nullptr || statistics.predicted != nullptr;
  if (kept.codes == nullptr) {
    return all ? Launch<Makes::kAllStatistics>(operands, tiles, stream)
               : Launch<Makes::kStatistics>(operands, tiles, stream);
  }
  return all ? Launch<Makes::kAllAndCodes>(operands, tiles, stream)
             : Launch<Makes::kCodes>(operands, tiles, stream);
}

cudaError_t LaunchTileGradient(const TileOperands& operands,
                               const PassBlock& block, const TileCut& cut,
                               const HeadInputs& inputs,
                               const TokenScale* scales, uint16_t* gradient,
                               cudaStream_t stream) {
  Tiles tiles = TilesOf(operands, block, cut, inputs);
  tiles.scales = scales;
  tiles.gradient = gradient;
  return Launch<Makes::kGradient>(operands, tiles, stream);
}

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
