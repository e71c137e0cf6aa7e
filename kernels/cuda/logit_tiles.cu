#include <algorithm>

#include "kernels/cuda/logit_tiles.h"
#include "kernels/cuda/tile_product.cuh"
#include "kernels/cuda/tile_results.cuh"

namespace rowhouse::kernels::cuda {
namespace logit_tile {
namespace {

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
}  // namespace logit_tile

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
  return logit_tile::Describe(inputs.hidden, inputs.token_count, slice.dim,
                              logit_tile::kTokens, operands.hidden) &&
         logit_tile::Describe(slice.weights, slice.row_count, slice.dim,
                              logit_tile::kRows / logit_tile::kBlocks,
                              operands.weights);
}

cudaError_t LaunchTileStatistics(const TileOperands& operands,
                                 const PassBlock& block, const TileCut& cut,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const TileStatistics& statistics,
                                 float* target_logits, const KeptBlock& kept,
                                 cudaStream_t stream) {
  using namespace logit_tile;
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
  using namespace logit_tile;
  Tiles tiles = TilesOf(operands, block, cut, inputs);
  tiles.scales = scales;
  tiles.gradient = gradient;
  return Launch<Makes::kGradient>(operands, tiles, stream);
}

}  // namespace rowhouse::kernels::cuda
