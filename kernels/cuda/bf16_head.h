#ifndef ROWHOUSE_KERNELS_CUDA_BF16_HEAD_H_
#define ROWHOUSE_KERNELS_CUDA_BF16_HEAD_H_

/// The LM head where hidden states and weights are bf16 and the slice has
/// neither bias nor softcap. Logits come in blocks of tokens and rows: from
/// tiles that never leave the multiprocessor (logit_tiles.h) where the device
/// has what that takes, else by cuBLASLt with one pass over each block
/// (logit_pass.h). Gradients are GEMMs over all tokens of a block. What
/// statistics keep of the logits spares the gradients one of four products;
/// without it they form the logits again, the same way and to the same bits.
///
/// A token that takes no part has zeros in the logit gradient; where there is
/// one, the weight gradient is formed from a copy of the hidden rows with zeros
/// in its place.

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/logit_pass.h"
#include "kernels/cuda/logit_tiles.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/stream.h"
#include "kernels/dense_table.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Whether the head of this slice and these inputs is one, with something to
/// do.
bool IsBf16Head(const HeadSlice& slice, const HeadInputs& inputs);

/// One call of it. The arguments outlive it.
class Bf16Head {
 public:
  Bf16Head(Stream& stream, Gemm& gemm, const HeadSlice& slice,
           const HeadInputs& inputs, const HeadBlocks& blocks);

  /// `Backend::HeadTokenStatistics`; keeps the logits that `kept` has room for.
  absl::Status Statistics(const HeadStatistics& statistics,
                          std::span<std::byte> kept);

  /// What `kept` holds, of the blocks of rows that it has room for.
  enum class Keeps : uint8_t { kNothing, kLogits, kGradient };

  /// What is wanted of `Gradients`; null where it is not.
  struct Wanted {
    float* hidden_gradient = nullptr;
    const MainGrad* main_grad = nullptr;
  };

  /// `Backend::HeadHiddenGradient` and `HeadWeightGradient`, either or both, of
  /// plain cross entropy (`merged` has no smoothing). Leaves the logit gradient
  /// in `kept`. Waits for the stream.
  ///
  /// REQUIRES: with both, main_grad is fp32.
  absl::Status Gradients(const HeadMerged& merged, std::span<std::byte> kept,
                         Keeps keeps, const Wanted& wanted);

  /// Bytes of scratch of the largest call of such a slice and so many tokens.
  static int64_t ScratchBytes(const HeadSlice& slice, int64_t token_count,
                              const HeadBlocks& blocks);

 private:
  // The blocks that a call is cut into.
  struct Cuts {
    BlockCut tokens;
    BlockCut rows;
    int64_t dim;

    static Cuts Of(const HeadSlice& slice, int64_t token_count,
                   const HeadBlocks& blocks, bool has_tiles);
  };
  // One block of each operand; null where it is not needed.
  struct Scratch {
    float* logits;
    uint16_t* gradient;
    uint16_t* hidden;    // Rows with zeros for tokens that take no part.
    float* sum;          // Rows of main_grad.
    TokenScale* scales;  // Of all tokens.
    TileStatistics tiles;
  };
  struct Needs {
    bool logits = false;
    bool gradient = false;
    bool hidden = false;
    bool sum = false;
    bool scales = false;
    bool tile_max = false;
    bool tile_sum = false;
    bool tile_weighted_sum = false;
    bool tile_predicted = false;
  };
  // What a call of `Gradients` has.
  struct Call {
    std::span<std::byte> kept;
    Keeps keeps;
    Scratch scratch;
    bool all_take_part;
  };

  static Scratch Cut(ScratchCutter& cutter, const Cuts& cuts,
                     const Needs& needs);
  PassBlock BlockOf(int64_t token_block, int64_t row_block) const {
    return {cuts_.tokens[token_block], cuts_.rows[row_block]};
  }
  TileCut tiles() const { return {cuts_.rows}; }
  HeadKept Layout() const;
  int64_t KeptRows(std::span<std::byte> kept) const;
  float* KeptStatistics(std::span<std::byte> kept) const;
  KeptBlock KeptOf(std::span<std::byte> kept, const PassBlock& block) const;
  absl::Status StatisticsOfTiles(const HeadStatistics& statistics,
                                 std::span<std::byte> kept);
  template <typename Pass>
  void ForLogits(const PassBlock& block, float* logits, Pass pass);
  const uint16_t* FormGradient(const Call& call, const PassBlock& block);
  const uint16_t* HiddenOf(const Call& call, const BlockRange& tokens);
  void HiddenAndWeightGradient(const Call& call, const Wanted& wanted);
  void WeightGradient(const Call& call, const MainGrad& main_grad);
  void AddToWeights(const Call& call, const PassBlock& block,
                    const uint16_t* gradient, float* sum, int64_t stride);
  void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
                Into into, float* out, int64_t stride);
  void Check(cudaError_t error, const char* doing);

  Stream& stream_;
  Gemm& gemm_;
  const HeadSlice& slice_;
  const HeadInputs& inputs_;
  const HeadBlocks& blocks_;
  TileOperands operands_;
  const bool has_tiles_;  // And so `operands_`.
  const Cuts cuts_;
  int64_t masked_token_ = -1;  // The first of those in `Scratch::hidden`.
  absl::Status status_;        // The first error.
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_BF16_HEAD_H_
