#include "kernels/cuda/bf16_head.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/head_block.h"
#include "kernels/cuda/head_run.h"
#include "kernels/cuda/main_grad_rows.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

// Tokens of a block of logits: with all rows of a block it is 128 MiB.
constexpr int64_t kMostLogitTokens = 4096;

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
                                  const HeadBlocks& blocks) {
  return {{token_count, blocks.token_count},
          {slice.row_count, std::min(blocks.row_count, HeadKept::kMostRows)},
          slice.dim};
}

Bf16Head::Bf16Head(Stream& stream, Gemm& gemm, const HeadSlice& slice,
                   const HeadInputs& inputs, const HeadBlocks& blocks)
    : stream_(stream),
      gemm_(gemm),
      slice_(slice),
      inputs_(inputs),
      blocks_(blocks),
      cuts_(Cuts::Of(slice, inputs.token_count, blocks)) {}

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
  return scratch;
}

int64_t Bf16Head::ScratchBytes(const HeadSlice& slice, int64_t token_count,
                               const HeadBlocks& blocks) {
  ScratchCutter cutter(nullptr);
  (void)Cut(cutter, Cuts::Of(slice, token_count, blocks),
            {.logits = true, .gradient = true, .hidden = true, .sum = true});
  return cutter.size_bytes();
}

// Blocks of rows one after another, each with all tokens.
KeptBlock Bf16Head::KeptOf(std::span<std::byte> kept,
                           const PassBlock& block) const {
  if (kept.empty()) return {};
  const int64_t tokens = inputs_.token_count;
  const HeadKept layout =
      HeadKept::Of(slice_, tokens, inputs_.hidden_dtype, blocks_);
  auto* const codes = reinterpret_cast<uint16_t*>(kept.data());
  auto* const statistics =
      reinterpret_cast<float*>(kept.data() + layout.statistics_offset);
  const int64_t row_block = block.rows.first / cuts_.rows.size;
  return {codes + row_block * tokens * HeadKept::Stride(cuts_.rows.size) +
              block.tokens.first * HeadKept::Stride(block.rows.count),
          statistics + (1 + row_block) * tokens, statistics};
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

absl::Status Bf16Head::Statistics(const HeadStatistics& statistics,
                                  std::span<std::byte> kept) {
  const auto scratch = stream_.Scratch([&](ScratchCutter& cutter) {
    return Cut(cutter, cuts_, {.logits = true});
  });
  if (!scratch.ok()) return scratch.status();
  Check(
      cudaMemsetAsync(statistics.target_logits, 0,
                      static_cast<size_t>(inputs_.token_count) * sizeof(float),
                      stream_.get()),
      "clearing target logits");
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
  const auto scratch = stream_.Scratch([&](ScratchCutter& cutter) {
    return Cut(cutter, cuts_,
               {.logits = keeps == Keeps::kNothing,
                .gradient = kept.empty(),
                .hidden = !all && wanted.main_grad != nullptr,
                .sum = through_copy});
  });
  if (!scratch.ok()) return scratch.status();
  const Call call = {merged, kept, keeps, *scratch};
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
  if (call.keeps == Keeps::kGradient) return kept.codes;
  if (call.keeps == Keeps::kLogits) {
    Check(LaunchPassKeptGradient(kept, block, inputs_, call.merged,
                                 stream_.get()),
          "forming a logit gradient");
    return kept.codes;
  }
  uint16_t* const gradient =
      kept.codes == nullptr ? call.scratch.gradient : kept.codes;
  ForLogits(block, call.scratch.logits, [&](const PassBlock& part) {
    const int64_t at = (part.tokens.first - block.tokens.first) *
                       HeadKept::Stride(block.rows.count);
    Check(LaunchPassGradient(call.scratch.logits, part, inputs_, call.merged,
                             gradient + at, stream_.get()),
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
  Check(LaunchMaskRows(hidden, tokens, slice_.dim, call.merged,
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
