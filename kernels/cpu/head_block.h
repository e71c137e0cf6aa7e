#ifndef ROWHOUSE_KERNELS_CPU_HEAD_BLOCK_H_
#define ROWHOUSE_KERNELS_CPU_HEAD_BLOCK_H_

/// The work on one block of tokens and one block of rows of a head call.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu_isa.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cpu {

/// The logits of a block of tokens and rows, or their gradient `p`: row `i` of
/// token `i` of the block begins at `i * stride`.
struct LogitBlock {
  float* data = nullptr;
  int64_t stride = 0;

  float* row(int64_t token) const { return data + token * stride; }
};

/// The tokens that take part in a call's statistics, by index.
std::vector<int64_t> AllTokens(int64_t token_count);

/// What every block of one call shares.
struct HeadCall {
  /// Of a block, where `HeadBlocks` has more: the logits of some tokens then
  /// stay in the second cache while they are worked on. Whole pairs of tiles
  /// (gemm_amx.cc), but no power of two, whose rows would share few lines of
  /// the first cache.
  static constexpr int64_t kMostRows = 544;

  CpuIsa isa;
  HeadSlice slice;
  HeadInputs inputs;
  std::span<const int64_t> tokens;  ///< Those that take part.
  BlockCut token_cut;               ///< Of positions in `tokens`.
  BlockCut row_cut;

  static HeadCall Of(CpuIsa isa, const HeadSlice& slice,
                     const HeadInputs& inputs, std::span<const int64_t> tokens,
                     const HeadBlocks& blocks);

  DType compute_type() const {
    return ComputeType(inputs.hidden_dtype, slice.dtype);
  }
  std::span<const int64_t> TokensOf(const BlockRange& block) const {
    return tokens.subspan(static_cast<size_t>(block.first),
                          static_cast<size_t>(block.count));
  }

  // Elements of scratch: of the largest block of each operand, and of
  // products, which come first for their alignment.
  int64_t hidden_floats() const { return token_cut.largest() * slice.dim; }
  int64_t weight_floats() const { return row_cut.largest() * slice.dim; }
  int64_t multiply_floats() const { return MultiplyScratchFloats(isa); }
  int64_t logit_floats() const {
    return token_cut.largest() * row_cut.largest();
  }
};

/// Hidden rows of a token block, or weights of a row block, in fp32: the rows
/// themselves where they are fp32 and lie together, else widened in `scratch`.
const float* HiddenBlock(const HeadCall& call, const BlockRange& tokens,
                         float* scratch);
const float* WeightBlock(const HeadCall& call, const BlockRange& rows,
                         float* scratch);

/// Operands of products: hidden rows, weights and `p`.
Operand HiddenOperand(const HeadCall& call, const float* hidden);
Operand WeightOperand(const HeadCall& call, const float* weights);
Operand LogitGradientOperand(const HeadCall& call, const LogitBlock& p);

/// Writes the fp32 logits of a block without their bias.
void FormLogits(const HeadCall& call, const BlockRange& tokens,
                const BlockRange& rows, const float* hidden,
                const float* weights, const LogitBlock& logits,
                float* multiply_scratch);

/// The kept logit gradient of a call (`HeadKept`): blocks [tokens, rows], of a
/// block of rows those of all tokens.
struct KeptGradient {
  std::byte* data = nullptr;
  int64_t row_count = 0;  ///< Rows before this one are kept.
  float* column_sums = nullptr;

  static KeptGradient Of(const HeadCall& call, std::span<std::byte> kept,
                         const HeadBlocks& blocks);

  bool Keeps(const BlockRange& rows) const { return rows.first < row_count; }

  /// Where in `data` a block begins, in elements.
  static int64_t Offset(const HeadCall& call, const BlockRange& tokens,
                        const BlockRange& rows) {
    return rows.first * static_cast<int64_t>(call.tokens.size()) +
           tokens.first * rows.count;
  }

  /// Where to form `p` of a block: a kept block of fp32 itself, else `scratch`.
  LogitBlock Block(const HeadCall& call, const BlockRange& tokens,
                   const BlockRange& rows, float* scratch) const;

  /// Column sums of a block of tokens, or null where none are kept.
  float* ColumnSums(const HeadCall& call, int64_t token_block,
                    const BlockRange& rows) const {
    return column_sums == nullptr || !Keeps(rows)
               ? nullptr
               : column_sums + token_block * call.slice.row_count + rows.first;
  }
};

/// Turns a block's logits in place into `p` (see `Backend::HeadHiddenGradient`)
/// rounded to the compute type, as fp32. Writes the column sums of `p` before
/// its rounding, tokens in order from +0, where `column_sums` is not null.
/// Stores `p` in `kept` where that keeps its rows. `logits` are
/// `kept.Block(call, tokens, rows, scratch)`.
void FormLogitGradient(const HeadCall& call, const HeadMerged& merged,
                       const BlockRange& tokens, const BlockRange& rows,
                       const KeptGradient& kept, const LogitBlock& logits,
                       float* column_sums);

/// A block of `p` that `FormLogitGradient` kept: there, or in `scratch`.
LogitBlock LoadLogitGradient(const HeadCall& call, const BlockRange& tokens,
                             const BlockRange& rows, const KeptGradient& kept,
                             float* scratch);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_HEAD_BLOCK_H_
