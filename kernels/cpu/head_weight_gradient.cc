#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/head_block.h"
#include "kernels/cpu/row_ops.h"

namespace rowhouse::kernels::cpu {
namespace {

// Scratch of one body, cut into its arrays.
struct Scratch {
  float* multiply;
  float* hidden;
  float* weights;
  float* p;
  float* main;         // Of a main_grad that is not fp32.
  float* column_sums;  // Of one token block,
  float* bias_sums;    // and of all.

  static int64_t Floats(const HeadCall& call) {
    return call.multiply_floats() + call.hidden_floats() +
           2 * call.weight_floats() + call.logit_floats() +
           2 * call.row_cut.largest();
  }
  static Scratch In(const HeadCall& call, float* data) {
    Scratch scratch{};
    scratch.multiply = data;
    scratch.hidden = scratch.multiply + call.multiply_floats();
    scratch.weights = scratch.hidden + call.hidden_floats();
    scratch.p = scratch.weights + call.weight_floats();
    scratch.main = scratch.p + call.logit_floats();
    scratch.column_sums = scratch.main + call.weight_floats();
    scratch.bias_sums = scratch.column_sums + call.row_cut.largest();
    return scratch;
  }
};

struct WeightGradientCall {
  const HeadCall& head;
  const HeadMerged& merged;
  KeptGradient kept;
  const MainGrad& main_grad;
  float* bias_grad;
};

// `p` of a block, and its column sums before its rounding, or null.
struct FormedBlock {
  LogitBlock p;
  const float* column_sums;
};

// Forms or loads it.
FormedBlock FormBlock(const WeightGradientCall& call, int64_t token_block,
                      const BlockRange& rows, const float* hidden,
                      const float* weights, const Scratch& scratch) {
  const BlockRange tokens = call.head.token_cut[token_block];
  if (call.kept.Keeps(rows)) {
    return {LoadLogitGradient(call.head, tokens, rows, call.kept, scratch.p),
            call.kept.ColumnSums(call.head, token_block, rows)};
  }
  const LogitBlock p = {scratch.p, rows.count};
  float* sums = call.bias_grad == nullptr ? nullptr : scratch.column_sums;
  FormLogits(call.head, tokens, rows, hidden, weights, p, scratch.multiply);
  FormLogitGradient(call.head, call.merged, tokens, rows, {}, p, sums);
  return {p, sums};
}

// Adds the gradient of a block of rows to `main`, fp32 with `stride`.
void AddBlock(const WeightGradientCall& call, const BlockRange& rows,
              const Scratch& scratch, float* main, int64_t stride) {
  const int64_t dim = call.head.slice.dim;
  const float* weights = call.kept.Keeps(rows)
                             ? nullptr
                             : WeightBlock(call.head, rows, scratch.weights);
  std::fill(scratch.bias_sums, scratch.bias_sums + rows.count, 0.0F);
  for (int64_t b = 0; b < call.head.token_cut.count(); ++b) {
    const BlockRange tokens = call.head.token_cut[b];
    const float* hidden = HiddenBlock(call.head, tokens, scratch.hidden);
    const FormedBlock formed =
        FormBlock(call, b, rows, hidden, weights, scratch);
    Multiply(call.head.isa,
             Transposed(LogitGradientOperand(call.head, formed.p)),
             HiddenOperand(call.head, hidden), {rows.count, dim, tokens.count},
             Into::kAdd, main, stride, scratch.multiply);
    if (formed.column_sums == nullptr) continue;
    for (int64_t j = 0; j < rows.count; ++j) {
      scratch.bias_sums[j] = scratch.bias_sums[j] + formed.column_sums[j];
    }
  }
  if (call.bias_grad == nullptr) return;
  float* bias_grad = call.bias_grad + rows.first;
  for (int64_t j = 0; j < rows.count; ++j) {
    bias_grad[j] = Canonical(bias_grad[j] + scratch.bias_sums[j]);
  }
}

// Straight into an fp32 main_grad.
void AddRows(const WeightGradientCall& call, const BlockRange& rows,
             const Scratch& scratch, float* main) {
  AddBlock(call, rows, scratch, main, call.main_grad.row_stride);
}

// Through an fp32 copy: one rounding.
template <typename Main>
void AddRows(const WeightGradientCall& call, const BlockRange& rows,
             const Scratch& scratch, Main* main) {
  const int64_t dim = call.main_grad.dim;
  const int64_t stride = call.main_grad.row_stride;
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t j = 0; j < dim; ++j) {
      scratch.main[i * dim + j] = Widen(main[i * stride + j]);
    }
  }
  AddBlock(call, rows, scratch, scratch.main, dim);
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t j = 0; j < dim; ++j) {
      main[i * stride + j] = Narrow<Main>(scratch.main[i * dim + j]);
    }
  }
}

}  // namespace

absl::Status HeadWeightGradient(Executor& executor, ScratchPool& pool,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<const std::byte> kept,
                                const MainGrad& main_grad, float* bias_grad) {
  const std::vector<int64_t> tokens =
      TokensWithGradient(merged, inputs.token_count);
  if (tokens.empty()) return absl::OkStatus();  // Not even -0 becomes +0.
  const HeadCall head =
      HeadCall::Of(executor.isa(), slice, inputs, tokens, blocks);
  const WeightGradientCall call = {
      head, merged,
      // Only read from here on.
      KeptGradient::Of(head, {const_cast<std::byte*>(kept.data()), kept.size()},
                       blocks),
      main_grad, bias_grad};
  return ForEachBlock(executor, pool, head.row_cut.count(),
                      Scratch::Floats(head),
                      [&](int64_t block, float* scratch) {
                        const BlockRange rows = head.row_cut[block];
                        WithDenseElement(main_grad.dtype, [&]<typename Main>() {
                          AddRows(call, rows, Scratch::In(head, scratch),
                                  static_cast<Main*>(main_grad.data) +
                                      rows.first * main_grad.row_stride);
                        });
                      });
}

}  // namespace rowhouse::kernels::cpu
