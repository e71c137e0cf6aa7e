#include "kernels/cpu/gemm_amx.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

// Every function here that has wide instructions has them by this attribute,
// for the reason that compile_for.h gives.
#define ROWHOUSE_AMX                                            \
  [[gnu::target(                                                \
      "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile," \
      "amx-bf16")]]

namespace rowhouse::kernels::cpu::amx {
namespace {

constexpr int64_t kSide = 16;   // Rows of a tile, and its columns of 32 bits.
constexpr int64_t kDepth = 32;  // bf16 elements of a tile's row.
constexpr int64_t kPair = 2 * kSide;  // A product works on pairs of tiles.
constexpr int kMostParts = 3;

// A tile: 16 rows of 16 pairs of bf16. Of `a` a row of the tile is a row of the
// matrix, 32 of its columns; of `b` a column of the tile is a column of the
// matrix, and each of the tile's rows two of its rows.
struct alignas(64) Tile {
  uint16_t elements[kSide * kDepth];
};

// The block sizes keep a pair of columns of tiles in the first cache, and all
// packed tiles in the second.
constexpr int64_t kBlockRows = 128;
constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kBlockDepthTiles = 6;        // Of operands in parts.
constexpr int64_t kBlockDepthTilesWhole = 16;  // Where both are one part.

constexpr int64_t TilesOf(int64_t side, int64_t depth_tiles, int parts) {
  return side / kSide * depth_tiles * parts;
}
constexpr int64_t LargestPack(int64_t side) {
  return std::max(TilesOf(side, kBlockDepthTiles, kMostParts),
                  TilesOf(side, kBlockDepthTilesWhole, 1));
}

struct Packs {
  Tile a[LargestPack(kBlockRows)];
  Tile b[LargestPack(kBlockColumns)];
  float edge[kPair * kPair];  // Of a pair of tiles that the result cuts.
};
static_assert(sizeof(Packs) == kScratchFloats * sizeof(float));

// What `_tile_loadconfig` reads: eight full tiles.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

ROWHOUSE_AMX __mmask16 MaskOf(int64_t count) {
  const int64_t bits = std::clamp<int64_t>(count, 0, kSide);
  return static_cast<__mmask16>((1U << bits) - 1);
}

// Row `row` of the tiles of the parts of 32 numbers, in two halves: the upper
// 16 bits of each are its first part, what is left has the others. `order` says
// which upper half comes where.
template <int kParts>
ROWHOUSE_AMX void SplitInto(__m512 low, __m512 high, __m512i order, Tile* tiles,
                            int64_t row) {
  const __m512 upper = _mm512_castsi512_ps(_mm512_set1_epi32(-0x10000));
  for (int part = 0; part < kParts; ++part) {
    _mm512_store_si512(
        tiles[part].elements + row * kDepth,
        _mm512_permutex2var_epi16(_mm512_castps_si512(low), order,
                                  _mm512_castps_si512(high)));
    if (part + 1 == kParts) break;
    low = _mm512_sub_ps(low, _mm512_and_ps(low, upper));
    high = _mm512_sub_ps(high, _mm512_and_ps(high, upper));
  }
}

// Transposes 16 x 16 elements of 32 bits in place.
ROWHOUSE_AMX void Transpose(Tile& tile) {
  __m512i r[kSide];
  __m512i t[kSide];
  auto* rows = reinterpret_cast<__m512i*>(tile.elements);
  for (int i = 0; i < kSide; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < kSide; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4 q + c], lane l: rows 4 q to 4 q + 3 of column 4 l + c.
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
    t[8 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
    rows[8 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
    rows[4 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
    rows[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
  }
}

// A block of an operand: `side` rows of `a`, or columns of `b`, and `depth` of
// the elements that are summed over. Element (s, d) is at
// `data[s * side_stride + d * depth_stride]`; one of the strides is 1.
struct Block {
  const float* data;
  int64_t side;
  int64_t depth;
  int64_t side_stride;
  int64_t depth_stride;
};

// Rows of the tiles are rows of the block.
template <int kParts>
ROWHOUSE_AMX void LoadAlongDepth(const Block& block, int64_t first_side,
                                 int64_t first_depth, Tile* tiles) {
  alignas(64) static constexpr uint16_t kOrder[kDepth] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i order = _mm512_load_si512(kOrder);
  const __mmask16 low = MaskOf(block.depth - first_depth);
  const __mmask16 high = MaskOf(block.depth - first_depth - kSide);
  const int64_t count = std::min(kSide, block.side - first_side);
  const float* from = block.data + first_side * block.side_stride + first_depth;
  for (int64_t i = 0; i < kSide; ++i, from += block.side_stride) {
    const bool there = i < count;
    SplitInto<kParts>(_mm512_maskz_loadu_ps(there ? low : 0, from),
                      _mm512_maskz_loadu_ps(there ? high : 0, from + kSide),
                      order, tiles, i);
  }
}

// Rows of the tiles are pairs of columns of the block, element by element.
template <int kParts>
ROWHOUSE_AMX void LoadAcrossDepth(const Block& block, int64_t first_side,
                                  int64_t first_depth, Tile* tiles) {
  alignas(64) static constexpr uint16_t kOrder[kDepth] = {
      1,  33, 3,  35, 5,  37, 7,  39, 9,  41, 11, 43, 13, 45, 15, 47,
      17, 49, 19, 51, 21, 53, 23, 55, 25, 57, 27, 59, 29, 61, 31, 63};
  const __m512i order = _mm512_load_si512(kOrder);
  const __mmask16 mask = MaskOf(block.side - first_side);
  const int64_t count = std::min(kDepth, block.depth - first_depth);
  const float* from =
      block.data + first_depth * block.depth_stride + first_side;
  for (int64_t i = 0; i < kSide; ++i, from += 2 * block.depth_stride) {
    SplitInto<kParts>(_mm512_maskz_loadu_ps(2 * i < count ? mask : 0, from),
                      _mm512_maskz_loadu_ps(2 * i + 1 < count ? mask : 0,
                                            from + block.depth_stride),
                      order, tiles, i);
  }
}

// Tiles in the order side, depth, part; zeros fill them up to whole pairs.
// Reads the block along its rows in memory.
template <int kParts>
ROWHOUSE_AMX void PackParts(const Block& block, bool rows_are_sides,
                            Tile* tiles) {
  const bool along = block.depth_stride == 1;
  const int64_t sides = (block.side + kPair - 1) / kPair * 2;
  const int64_t depths = (block.depth + kDepth - 1) / kDepth;
  for (int64_t i = 0; i < sides * depths; ++i) {
    const int64_t s = along ? i / depths : i % sides;
    const int64_t d = along ? i % depths : i / sides;
    Tile* const to = tiles + (s * depths + d) * kParts;
    if (along) {
      LoadAlongDepth<kParts>(block, s * kSide, d * kDepth, to);
    } else {
      LoadAcrossDepth<kParts>(block, s * kSide, d * kDepth, to);
    }
    if (along == rows_are_sides) continue;
    for (int part = 0; part < kParts; ++part) Transpose(to[part]);
  }
}

void Pack(const Block& block, int parts, bool rows_are_sides, Tile* tiles) {
  switch (parts) {
    case 1:
      return PackParts<1>(block, rows_are_sides, tiles);
    case 2:
      return PackParts<2>(block, rows_are_sides, tiles);
    default:
      return PackParts<3>(block, rows_are_sides, tiles);
  }
}

// bf16 numbers that make up one of `dtype`.
int PartsOf(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return 1;
    case DType::kFp16:
      return 2;
    case DType::kFp32:
      return 3;
  }
  return kMostParts;
}

// The 32 x 32 sums of two rows of tiles with two columns of tiles, written or
// added. Parts i and j meet where i + j < 3.
struct Pair {
  const Tile* first;
  const Tile* second;
  int parts;
};

// Counts parts from 0, but the one that is held first.
int PartInTurn(int turn, int held, int count) {
  if (held < 0 || held >= count || turn > held) return turn;
  return turn == 0 ? held : turn - 1;
}

ROWHOUSE_AMX void MultiplyPair(const Pair& a, const Pair& b,
                               int64_t depth_tiles, Into into, float* out,
                               int64_t stride) {
  constexpr int64_t kTileBytes = 64;
  const auto out_bytes = static_cast<size_t>(stride) * sizeof(float);
  float* const lower = out + kSide * stride;
  // GCC's tile loads do not say that they read memory.
  asm volatile("" ::: "memory");
  if (into == Into::kAdd) {
    _tile_loadd(0, out, out_bytes);
    _tile_loadd(1, out + kSide, out_bytes);
    _tile_loadd(2, lower, out_bytes);
    _tile_loadd(3, lower + kSide, out_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t d = 0; d < depth_tiles; ++d) {
    int held = -1;  // Part of `b` in tiles 6 and 7.
    for (int i = a.parts - 1; i >= 0; --i) {
      _tile_loadd(4, a.first + d * a.parts + i, kTileBytes);
      _tile_loadd(5, a.second + d * a.parts + i, kTileBytes);
      const int count = std::min(b.parts, kMostParts - i);
      for (int n = 0; n < count; ++n) {
        const int j = PartInTurn(n, held, count);
        if (j != held) {
          _tile_loadd(6, b.first + d * b.parts + j, kTileBytes);
          _tile_loadd(7, b.second + d * b.parts + j, kTileBytes);
          held = j;
        }
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  _tile_stored(0, out, out_bytes);
  _tile_stored(1, out + kSide, out_bytes);
  _tile_stored(2, lower, out_bytes);
  _tile_stored(3, lower + kSide, out_bytes);
}

void CopyRows(const float* from, int64_t from_stride, int64_t rows,
              int64_t columns, float* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * from_stride, columns, to + i * to_stride);
  }
}

// All pairs of tiles of two packed blocks.
void MultiplyPacked(Packs& packs, const ProductShape& shape, int a_parts,
                    int b_parts, Into into, float* out, int64_t stride) {
  const int64_t depth = (shape.k + kDepth - 1) / kDepth;
  for (int64_t j = 0; j < shape.n; j += kPair) {
    const Tile* b = packs.b + j / kSide * depth * b_parts;
    for (int64_t i = 0; i < shape.m; i += kPair) {
      const Tile* a = packs.a + i / kSide * depth * a_parts;
      const Pair a_pair = {a, a + depth * a_parts, a_parts};
      const Pair b_pair = {b, b + depth * b_parts, b_parts};
      float* const at = out + i * stride + j;
      const int64_t rows = std::min(kPair, shape.m - i);
      const int64_t columns = std::min(kPair, shape.n - j);
      if (rows == kPair && columns == kPair) {
        MultiplyPair(a_pair, b_pair, depth, into, at, stride);
        continue;
      }
      if (into == Into::kAdd) {
        CopyRows(at, stride, rows, columns, packs.edge, kPair);
      }
      MultiplyPair(a_pair, b_pair, depth, into, packs.edge, kPair);
      CopyRows(packs.edge, kPair, rows, columns, at, stride);
    }
  }
}

ROWHOUSE_AMX void ConfigureTiles() {
  static constexpr TileConfig kConfig;
  _tile_loadconfig(&kConfig);
}

ROWHOUSE_AMX void ReleaseTiles() { _tile_release(); }

// A block of `a`, by rows and columns of the product; of `b`, by columns and
// rows.
Block BlockOf(const Operand& operand, bool side_is_row, int64_t first_side,
              int64_t side, int64_t first_depth, int64_t depth) {
  const bool along = operand.transposed != side_is_row;
  const int64_t side_stride = along ? operand.stride : 1;
  const int64_t depth_stride = along ? 1 : operand.stride;
  return {operand.data + first_side * side_stride + first_depth * depth_stride,
          side, depth, side_stride, depth_stride};
}

bool CpuHasIt() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kTiles = 1U << 24;
  constexpr unsigned kBf16Tiles = 1U << 22;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0 ||
      (d & kBf16Tiles) == 0) {
    return false;
  }
  constexpr unsigned kAvx512Bf16 = 1U << 5;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bf16) != 0;
}

// Linux gives the tiles' state to processes that ask for it.
bool SystemAllowsIt() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool IsAvailable() {
  static const bool available = CpuHasIt() && SystemAllowsIt();
  return available;
}

void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
              Into into, float* out, int64_t stride, float* scratch) {
  if (shape.k == 0 && into == Into::kWrite) {
    for (int64_t i = 0; i < shape.m; ++i) {
      std::fill_n(out + i * stride, shape.n, 0.0F);
    }
  }
  const int a_parts = PartsOf(a.dtype);
  const int b_parts = PartsOf(b.dtype);
  const int64_t block_depth =
      kDepth *
      (a_parts + b_parts == 2 ? kBlockDepthTilesWhole : kBlockDepthTiles);
  auto& packs = *new (scratch) Packs;
  ConfigureTiles();
  for (int64_t d = 0; d < shape.k; d += block_depth) {
    const int64_t depth = std::min(block_depth, shape.k - d);
    const Into part_into = d == 0 ? into : Into::kAdd;
    for (int64_t j = 0; j < shape.n; j += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, shape.n - j);
      Pack(BlockOf(b, false, j, columns, d, depth), b_parts, false, packs.b);
      for (int64_t i = 0; i < shape.m; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, shape.m - i);
        Pack(BlockOf(a, true, i, rows, d, depth), a_parts, true, packs.a);
        MultiplyPacked(packs, {rows, columns, depth}, a_parts, b_parts,
                       part_into, out + i * stride + j, stride);
      }
    }
  }
  ReleaseTiles();
}

}  // namespace rowhouse::kernels::cpu::amx
