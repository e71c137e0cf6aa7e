#include "kernels/cuda/head.h"

#include <cstdint>

#include "kernels/cuda/bf16_head.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/head_run.h"
#include "kernels/cuda/main_grad_rows.h"

namespace rowhouse::kernels::cuda {
namespace {

// Whether the gradients are those of `Bf16Head`.
bool IsPlain(const HeadSlice& slice, const HeadInputs& inputs,
             const HeadMerged& merged) {
  return IsBf16Head(slice, inputs) && merged.smoothing == nullptr;
}

}  // namespace

absl::Status HeadTokenStatistics(Stream& stream, Gemm& gemm,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadBlocks& blocks,
                                 const HeadStatistics& statistics,
                                 std::span<std::byte> kept) {
  if (inputs.token_count == 0) return absl::OkStatus();
  if (IsBf16Head(slice, inputs)) {
    return Bf16Head(stream, gemm, slice, inputs, blocks)
        .Statistics(statistics, kept);
  }
  const HeadCall call = HeadCall::Of(slice, inputs, inputs.token_count, blocks);
  const auto scratch = stream.Scratch(
      [&](ScratchCutter& cutter) { return HeadScratch::Cut(cutter, call, 0); });
  if (!scratch.ok()) return scratch.status();
  HeadRun run(stream, gemm, call, *scratch);
  run.Check(
      cudaMemsetAsync(statistics.target_logits, 0,
                      static_cast<size_t>(inputs.token_count) * sizeof(float),
                      stream.get()),
      "clearing target logits");
  const auto merge = [&](const LogitBlock& block) {
    run.Check(
        LaunchMergeStatistics(block, slice, inputs, statistics, stream.get()),
        "merging head statistics");
  };
  for (int64_t b = 0; b < call.token_cut.count(); ++b) {
    const BlockRange tokens = call.token_cut[b];
    if (slice.row_count == 0) merge({nullptr, tokens, {}});
    const Operand hidden = run.Hidden(tokens);
    for (int64_t r = 0; r < call.row_cut.count(); ++r) {
      const BlockRange rows = call.row_cut[r];
      merge(run.Logits(tokens, rows, hidden, run.Weights(rows)));
    }
  }
  return run.status();
}

absl::Status HeadHiddenGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<std::byte> kept, bool has_logits,
                                float* hidden_gradient) {
  if (IsPlain(slice, inputs, merged)) {
    return Bf16Head(stream, gemm, slice, inputs, blocks)
        .Gradients(
            merged, kept,
            has_logits ? Bf16Head::Keeps::kLogits : Bf16Head::Keeps::kNothing,
            {.hidden_gradient = hidden_gradient});
  }
  const int64_t dim = slice.dim;
  if (inputs.token_count == 0 || dim == 0) return absl::OkStatus();
  absl::Status cleared =
      ToStatus(cudaMemsetAsync(hidden_gradient, 0,
                               static_cast<size_t>(inputs.token_count * dim) *
                                   sizeof(float),
                               stream.get()),
               "clearing a hidden gradient");
  if (!cleared.ok() || slice.row_count == 0) return cleared;
  const auto tokens_in = TokensOf(stream, merged, inputs.token_count);
  if (!tokens_in.ok()) return tokens_in.status();
  if (tokens_in->empty()) return absl::OkStatus();
  HeadCall call = HeadCall::Of(slice, inputs,
                               static_cast<int64_t>(tokens_in->size()), blocks);
  const auto scratch =
      TakeScratch(stream, *tokens_in, call.hidden_elements(), call);
  if (!scratch.ok()) return scratch.status();
  const LogitGradient gradient = LogitGradient::In(call, kept, blocks);
  HeadRun run(stream, gemm, call, *scratch);
  for (int64_t b = 0; b < call.token_cut.count(); ++b) {
    const BlockRange tokens = call.token_cut[b];
    const Operand hidden = run.Hidden(tokens);
    for (int64_t r = 0; r < call.row_cut.count(); ++r) {
      const BlockRange rows = call.row_cut[r];
      const Operand weights = run.Weights(rows);
      const LogitBlock logits = run.Logits(tokens, rows, hidden, weights);
      const RowBlock p = gradient.Block(call, *scratch, tokens, rows);
      run.Check(LaunchFormLogitGradient(
                    logits, slice, inputs, merged, call.tokens, p,
                    gradient.KeptSums(call, rows).Of(b), stream.get()),
                "forming a logit gradient");
      run.Multiply({p.data, p.stride}, weights, {tokens.count, dim, rows.count},
                   r == 0 ? Into::kWrite : Into::kAdd, scratch->sum, dim);
    }
    run.Check(LaunchCopyRows({scratch->sum, DType::kFp32, dim}, nullptr,
                             {hidden_gradient, DType::kFp32, dim},
                             call.tokens + tokens.first, tokens.count, dim,
                             stream.get()),
              "storing a hidden gradient");
  }
  return run.status();
}

absl::Status HeadWeightGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<const std::byte> kept,
                                const MainGrad& main_grad, float* bias_grad) {
  if (IsPlain(slice, inputs, merged)) {
    // Only read where it has the gradient.
    const std::span<std::byte> memory = {const_cast<std::byte*>(kept.data()),
                                         kept.size()};
    return Bf16Head(stream, gemm, slice, inputs, blocks)
        .Gradients(merged, memory,
                   kept.empty() ? Bf16Head::Keeps::kNothing
                                : Bf16Head::Keeps::kGradient,
                   {.main_grad = &main_grad});
  }
  const int64_t dim = slice.dim;
  if (inputs.token_count == 0 || slice.row_count == 0) return absl::OkStatus();
  const auto tokens_in = TokensOf(stream, merged, inputs.token_count);
  if (!tokens_in.ok()) return tokens_in.status();
  if (tokens_in->empty()) return absl::OkStatus();  // Not even -0 becomes +0.
  HeadCall call = HeadCall::Of(slice, inputs,
                               static_cast<int64_t>(tokens_in->size()), blocks);
  const bool through_copy = main_grad.dtype != DType::kFp32;
  const auto scratch = TakeScratch(
      stream, *tokens_in, through_copy ? call.weight_elements() : 0, call);
  if (!scratch.ok()) return scratch.status();
  // Only read from here on.
  const LogitGradient gradient = LogitGradient::In(
      call, {const_cast<std::byte*>(kept.data()), kept.size()}, blocks);
  HeadRun run(stream, gemm, call, *scratch);
  for (int64_t r = 0; r < call.row_cut.count(); ++r) {
    const BlockRange rows = call.row_cut[r];
    const bool forms = !gradient.Keeps(rows);
    const Operand weights = forms ? run.Weights(rows) : Operand();
    const ColumnSums sums = gradient.Sums(call, *scratch, rows);
    const auto add = [&](float* sum, int64_t stride) {
      for (int64_t b = 0; b < call.token_cut.count(); ++b) {
        const BlockRange tokens = call.token_cut[b];
        const Operand hidden = run.Hidden(tokens);
        const RowBlock p = gradient.Block(call, *scratch, tokens, rows);
        if (forms) {
          run.Check(LaunchFormLogitGradient(
                        run.Logits(tokens, rows, hidden, weights), slice,
                        inputs, merged, call.tokens, p, sums.Of(b),
                        stream.get()),
                    "forming a logit gradient");
        }
        run.Multiply({p.data, p.stride, true}, hidden,
                     {rows.count, dim, tokens.count}, Into::kAdd, sum, stride);
      }
    };
    run.Check(AddToRows(main_grad, rows, scratch->sum, stream.get(), add));
    if (bias_grad == nullptr) continue;
    run.Check(
        LaunchAddBiasGradient(sums.data, call.token_cut.count(), sums.stride,
                              rows.count, bias_grad + rows.first, stream.get()),
        "adding a bias gradient");
  }
  return run.status();
}

absl::Status HeadGradients(Stream& stream, Gemm& gemm, const HeadSlice& slice,
                           const HeadInputs& inputs, const HeadMerged& merged,
                           const HeadBlocks& blocks, std::span<std::byte> kept,
                           float* hidden_gradient, const MainGrad& main_grad,
                           float* bias_grad) {
  if (IsPlain(slice, inputs, merged) && main_grad.dtype == DType::kFp32) {
    return Bf16Head(stream, gemm, slice, inputs, blocks)
        .Gradients(
            merged, kept,
            kept.empty() ? Bf16Head::Keeps::kNothing : Bf16Head::Keeps::kLogits,
            {hidden_gradient, &main_grad});
  }
  absl::Status done =
      HeadHiddenGradient(stream, gemm, slice, inputs, merged, blocks, kept,
                         /*has_logits=*/!kept.empty(), hidden_gradient);
  if (!done.ok()) return done;
  return HeadWeightGradient(stream, gemm, slice, inputs, merged, blocks, kept,
                            main_grad, bias_grad);
}

}  // namespace rowhouse::kernels::cuda
