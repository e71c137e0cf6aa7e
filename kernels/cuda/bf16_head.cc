#include "kernels/cuda/bf16_head.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/head_block.h"
#include "kernels/cuda/head_run.h"
#include "kernels/cuda/main_grad_rows.h"
#include "kernels/cuda/merge_tiles.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

// Tokens of a block of logits: with all rows of a block it is 128 MiB.
constexpr int64_t kMostLogitTokens = 4096;

bool HasTiles(const HeadSlice& slice) {
  constexpr int64_t kElementsOfCopies = 8;  // 16 bytes.
  return slice.dim % kElementsOfCopies == 0 && HasLogitTiles();
}

const uint16_t* RowsFrom(const void* rows, int64_t first, int64_t dim) {
  return static_cast<const uint16_t*>(rows) + first * dim;
}

}  // namespace

bool IsBf16Head(const HeadSlice& slice, const HeadInputs& inputs) {
  return slice.dtype == DType::kBf16 && inputs.hidden_dtype == DType::kBf16 &&
         slice.bias == nullptr && slice.softcap == 0.0F &&
         inputs.token_count > 0 && slice.row_count > 0 && slice.dim > 0;
}

Bf16Head::Cuts Bf16Head::Cuts::Of(const HeadSlice& slice, int64_t token_count,
                                  const HeadBlocks& blocks, bool has_tiles) {
  const int64_t rows = has_tiles
                           ? blocks.row_count
                           : std::min(blocks.row_count, HeadKept::kMostRows);
  return {
      {token_count, blocks.token_count}, {slice.row_count, rows}, slice.dim};
}

Bf16Head::Bf16Head(Stream& stream, Gemm& gemm, const HeadSlice& slice,
                   const HeadInputs& inputs, const HeadBlocks& blocks)
    : stream_(stream),
      gemm_(gemm),
      slice_(slice),
      inputs_(inputs),
      blocks_(blocks),
      has_tiles_(HasTiles(slice) && DescribeOperands(slice, inputs, operands_)),
      cuts_(Cuts::Of(slice, inputs.token_count, blocks, has_tiles_)) {}

Bf16Head::Scratch Bf16Head::Cut(ScratchCutter& cutter, const Cuts& cuts,
                                const Needs& needs) {
  const int64_t tokens = cuts.tokens.largest();
  const int64_t rows = HeadKept::Stride(cuts.rows.largest());
  Scratch scratch = {};
  if (needs.logits) {
    scratch.logits =
        cutter.Take<float>(std::min(tokens, kMostLogitTokens) * rows);
  }
  if (needs.gradient) scratch.gradient = cutter.Take<uint16_t>(tokens * rows);
  if (needs.hidden) scratch.hidden = cutter.Take<uint16_t>(tokens * cuts.dim);
  if (needs.sum) {
    scratch.sum = cutter.Take<float>(cuts.rows.largest() * cuts.dim);
  }
  if (needs.scales) {
    scratch.scales = cutter.Take<TokenScale>(cuts.tokens.total);
  }
  const int64_t of_tiles = TileCut{cuts.rows}.count() * cuts.tokens.total;
  const auto take = [&]<typename T>(bool wanted, T*& array) {
    if (wanted) array = cutter.Take<T>(of_tiles);
  };
  take(needs.tile_max, scratch.tiles.max);
  take(needs.tile_sum, scratch.tiles.sum);
  take(needs.tile_weighted_sum, scratch.tiles.weighted_sum);
  take(needs.tile_predicted, scratch.tiles.predicted);
  return scratch;
}

int64_t Bf16Head::ScratchBytes(const HeadSlice& slice, int64_t token_count,
                               const HeadBlocks& blocks) {
  // Either way, should operands lie where tiles can't be copied from.
  int64_t most = 0;
  for (const bool has_tiles : {false, true}) {
    const Cuts cuts = Cuts::Of(slice, token_count, blocks, has_tiles);
    const auto add = [&](const Needs& needs) {
      ScratchCutter cutter(nullptr);
      (void)Cut(cutter, cuts, needs);
      most = std::max(most, cutter.size_bytes());
    };
    add({.logits = !has_tiles,
         .gradient = true,
         .hidden = true,
         .sum = true,
         .scales = true});
    add({.tile_max = has_tiles,
         .tile_sum = has_tiles,
         .tile_weighted_sum = has_tiles,
         .tile_predicted = has_tiles});
  }
  return most;
}

HeadKept Bf16Head::Layout() const {
  return HeadKept::Of(slice_, inputs_.token_count, inputs_.hidden_dtype,
                      blocks_);
}

// Rows before this one are kept.
int64_t Bf16Head::KeptRows(std::span<std::byte> kept) const {
  if (kept.empty()) return 0;
  return Layout().RowsIn(static_cast<int64_t>(kept.size()), cuts_.rows,
                         inputs_.token_count * SizeOf(DType::kBf16));
}

// The targets' logits, and the largest ones of blocks or tiles.
float* Bf16Head::KeptStatistics(std::span<std::byte> kept) const {
  return reinterpret_cast<float*>(kept.data() + Layout().statistics_offset);
}

// Blocks of rows lie one after another, each with all tokens.
KeptBlock Bf16Head::KeptOf(std::span<std::byte> kept,
                           const PassBlock& block) const {
  if (block.rows.first >= KeptRows(kept)) return {};
  const int64_t tokens = inputs_.token_count;
  auto* const codes =
      reinterpret_cast<uint16_t*>(kept.data() + Layout().gradient_offset);
  float* const statistics = KeptStatistics(kept);
  const int64_t row_block = block.rows.first / cuts_.rows.size;
  KeptBlock of;
  of.codes = codes + row_block * tokens * HeadKept::Stride(cuts_.rows.size) +
             block.tokens.first * HeadKept::Stride(block.rows.count);
  of.target_logits = statistics;
  of.largest =
      statistics +
      tokens * (1 + (has_tiles_ ? tiles().first(block.rows) : row_block));
  of.rows_of_largest = has_tiles_ ? HeadKept::kTileRows : cuts_.rows.size;
  return of;
}

// Calls `pass` with each block of logits of `block`, and where they lie.
template <typename Pass>
void Bf16Head::ForLogits(const PassBlock& block, float* logits, Pass pass) {
  const BlockCut cut = {block.tokens.count, kMostLogitTokens};
  for (int64_t b = 0; b < cut.count(); ++b) {
    const PassBlock part = {{block.tokens.first + cut[b].first, cut[b].count},
                            block.rows};
    const Operand hidden = {
        RowsFrom(inputs_.hidden, part.tokens.first, slice_.dim), slice_.dim};
    const Operand weights = {
        RowsFrom(slice_.weights, part.rows.first, slice_.dim), slice_.dim,
        true};
    Multiply(hidden, weights, {part.tokens.count, part.rows.count, slice_.dim},
             Into::kWrite, logits, HeadKept::Stride(part.rows.count));
    pass(part);
  }
}

absl::Status Bf16Head::StatisticsOfTiles(const HeadStatistics& statistics,
                                         std::span<std::byte> kept) {
  const bool weighted = statistics.weighted_logit_sums != nullptr;
  const bool predicted = statistics.predicted != nullptr;
  const auto scratch = stream_.Scratch([&](ScratchCutter& cutter) {
    return Cut(cutter, cuts_,
               {.tile_max = kept.empty(),
                .tile_sum = true,
                .tile_weighted_sum = weighted,
                .tile_predicted = predicted});
  });
  if (!scratch.ok()) return scratch.status();
  TileStatistics of_tiles = scratch->tiles;
  if (!kept.empty()) {
    of_tiles.max = KeptStatistics(kept) + inputs_.token_count;
  }
  for (int64_t b = 0; b < cuts_.tokens.count(); ++b) {
    for (int64_t r = 0; r < cuts_.rows.count(); ++r) {
      const PassBlock block = BlockOf(b, r);
      Check(LaunchTileStatistics(operands_, block, tiles(), slice_, inputs_,
                                 of_tiles, statistics.target_logits,
                                 KeptOf(kept, block), stream_.get()),
            "forming head statistics");
    }
  }
  Check(LaunchMergeTiles(of_tiles, tiles().count(), inputs_.token_count,
                         statistics, stream_.get()),
        "merging head statistics");
  return status_;
}

absl::Status Bf16Head::Statistics(const HeadStatistics& statistics,
                                  std::span<std::byte> kept) {
  Check(
      cudaMemsetAsync(statistics.target_logits, 0,
                      static_cast<size_t>(inputs_.token_count) * sizeof(float),
                      stream_.get()),
      "clearing target logits");
  if (has_tiles_) return StatisticsOfTiles(statistics, kept);
  const auto scratch = stream_.Scratch([&](ScratchCutter& cutter) {
    return Cut(cutter, cuts_, {.logits = true});
  });
  if (!scratch.ok()) return scratch.status();
  for (int64_t b = 0; b < cuts_.tokens.count(); ++b) {
    for (int64_t r = 0; r < cuts_.rows.count(); ++r) {
      ForLogits(BlockOf(b, r), scratch->logits, [&](const PassBlock& part) {
        Check(
            LaunchPassStatistics(scratch->logits, part, slice_, inputs_,
                                 statistics, KeptOf(kept, part), stream_.get()),
            "merging head statistics");
      });
    }
  }
  return status_;
}

absl::Status Bf16Head::Gradients(const HeadMerged& merged,
                                 std::span<std::byte> kept, Keeps keeps,
                                 const Wanted& wanted) {
  const int64_t dim = slice_.dim;
  const absl::StatusOr<std::vector<int64_t>> tokens =
      TokensOf(stream_, merged, inputs_.token_count);
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty()) {
    if (wanted.hidden_gradient == nullptr) return absl::OkStatus();
    return ToStatus(
        cudaMemsetAsync(
            wanted.hidden_gradient, 0,
            static_cast<size_t>(inputs_.token_count * dim) * sizeof(float),
            stream_.get()),
        "clearing a hidden gradient");
  }
  const bool all = static_cast<int64_t>(tokens->size()) == inputs_.token_count;
  const bool through_copy =
      wanted.main_grad != nullptr && wanted.main_grad->dtype != DType::kFp32;
  const bool forms = KeptRows(kept) < slice_.row_count;
  const auto scratch = stream_.Scratch([&](ScratchCutter& cutter) {
    return Cut(cutter, cuts_,
               {.logits = (forms || keeps == Keeps::kNothing) && !has_tiles_,
                .gradient = forms,
                .hidden = !all && wanted.main_grad != nullptr,
                .sum = through_copy,
                .scales = true});
  });
  if (!scratch.ok()) return scratch.status();
  Check(LaunchTokenScales(merged, inputs_.token_count, scratch->scales,
                          stream_.get()),
        "scaling a logit gradient");
  const Call call = {kept, keeps, *scratch, all};
  masked_token_ = -1;
  if (wanted.hidden_gradient != nullptr) {
    HiddenAndWeightGradient(call, wanted);
  } else {
    WeightGradient(call, *wanted.main_grad);
  }
  return status_;
}

// The logit gradient of a block; where it lies.
const uint16_t* Bf16Head::FormGradient(const Call& call,
                                       const PassBlock& block) {
  const KeptBlock kept = KeptOf(call.kept, block);
  const Keeps keeps = kept.codes == nullptr ? Keeps::kNothing : call.keeps;
  if (keeps == Keeps::kGradient) return kept.codes;
  if (keeps == Keeps::kLogits) {
    Check(LaunchPassKeptGradient(kept, block, inputs_, call.scratch.scales,
                                 stream_.get()),
          "forming a logit gradient");
    return kept.codes;
  }
  uint16_t* const gradient =
      kept.codes == nullptr ? call.scratch.gradient : kept.codes;
  if (has_tiles_) {
    Check(LaunchTileGradient(operands_, block, tiles(), inputs_,
                             call.scratch.scales, gradient, stream_.get()),
          "forming a logit gradient");
    return gradient;
  }
  ForLogits(block, call.scratch.logits, [&](const PassBlock& part) {
    const int64_t at = (part.tokens.first - block.tokens.first) *
                       HeadKept::Stride(block.rows.count);
    Check(LaunchPassGradient(call.scratch.logits, part, inputs_,
                             call.scratch.scales, gradient + at, stream_.get()),
          "forming a logit gradient");
  });
  return gradient;
}

const uint16_t* Bf16Head::HiddenOf(const Call& call, const BlockRange& tokens) {
  const uint16_t* const hidden =
      RowsFrom(inputs_.hidden, tokens.first, slice_.dim);
  if (call.scratch.hidden == nullptr) return hidden;
  if (masked_token_ == tokens.first) return call.scratch.hidden;
  masked_token_ = tokens.first;
  Check(LaunchMaskRows(hidden, tokens, slice_.dim, call.scratch.scales,
                       call.scratch.hidden, stream_.get()),
        "masking hidden rows");
  return call.scratch.hidden;
}

void Bf16Head::AddToWeights(const Call& call, const PassBlock& block,
                            const uint16_t* gradient, float* sum,
                            int64_t stride) {
  Multiply({gradient, HeadKept::Stride(block.rows.count), true},
           {HiddenOf(call, block.tokens), slice_.dim},
           {block.rows.count, slice_.dim, block.tokens.count}, Into::kAdd, sum,
           stride);
}

void Bf16Head::HiddenAndWeightGradient(const Call& call, const Wanted& wanted) {
  const int64_t dim = slice_.dim;
  for (int64_t b = 0; b < cuts_.tokens.count(); ++b) {
    for (int64_t r = 0; r < cuts_.rows.count(); ++r) {
      const PassBlock block = BlockOf(b, r);
      const uint16_t* const gradient = FormGradient(call, block);
      Multiply({gradient, HeadKept::Stride(block.rows.count)},
               {RowsFrom(slice_.weights, block.rows.first, dim), dim},
               {block.tokens.count, dim, block.rows.count},
               r == 0 ? Into::kWrite : Into::kAdd,
               wanted.hidden_gradient + block.tokens.first * dim, dim);
      if (wanted.main_grad == nullptr) continue;
      AddToWeights(call, block, gradient,
                   static_cast<float*>(wanted.main_grad->data) +
                       block.rows.first * wanted.main_grad->row_stride,
                   wanted.main_grad->row_stride);
    }
  }
  if (call.all_take_part) return;
  // A weight that is not finite made NaN of their zeros.
  Check(LaunchClearLeftOut(wanted.hidden_gradient, inputs_.token_count, dim,
                           call.scratch.scales, stream_.get()),
        "clearing a hidden gradient");
}

void Bf16Head::WeightGradient(const Call& call, const MainGrad& main_grad) {
  for (int64_t r = 0; r < cuts_.rows.count(); ++r) {
    const auto add = [&](float* sum, int64_t stride) {
      for (int64_t b = 0; b < cuts_.tokens.count(); ++b) {
        const PassBlock block = BlockOf(b, r);
        AddToWeights(call, block, FormGradient(call, block), sum, stride);
      }
    };
    status_.Update(AddToRows(main_grad, cuts_.rows[r], call.scratch.sum,
                             stream_.get(), add));
  }
}

void Bf16Head::Multiply(const Operand& a, const Operand& b,
                        const ProductShape& shape, Into into, float* out,
                        int64_t stride) {
  status_.Update(gemm_.Multiply(DType::kBf16, a, b, shape, into, out, stride,
                                stream_.get()));
}

void Bf16Head::Check(cudaError_t error, const char* doing) {
  status_.Update(ToStatus(error, doing));
}

}  // namespace rowhouse::kernels::cuda
