#include "kernels/cpu/head_block.h"

#include <numeric>

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/exp.h"
#include "kernels/tanh.h"

namespace rowhouse::kernels::cpu {
namespace {

template <typename From>
void WidenRow(const From* __restrict from, int64_t count,
              float* __restrict to) {
  for (int64_t j = 0; j < count; ++j) to[j] = Widen(from[j]);
}

// Rounds a row in place, and to `copy`.
template <typename To>
void RoundRow(float* __restrict row, int64_t count, To* __restrict copy) {
  for (int64_t j = 0; j < count; ++j) copy[j] = Narrow<To>(row[j]);
  for (int64_t j = 0; j < count; ++j) row[j] = Widen(copy[j]);
}

// fp32: the row is its own copy.
void RoundRow(float* __restrict row, int64_t count, float*) {
  for (int64_t j = 0; j < count; ++j) row[j] = Canonical(row[j]);
}

bool LieTogether(std::span<const int64_t> tokens) {
  return tokens.back() - tokens.front() + 1 ==
         static_cast<int64_t>(tokens.size());
}

// One token's share of the loss's gradient.
struct TokenGradient {
  float max;
  float scale;
  float target;
  float smoothing;
  int64_t target_column;  // Of the block; any other value: not there.
};

// What the rows of a block have of their own; null where the slice has none.
struct RowTerms {
  const float* bias;
  const float* class_weights;
  float softcap;

  static RowTerms Of(const HeadSlice& slice, const BlockRange& rows) {
    const auto at = [&](const float* values) {
      return values == nullptr ? nullptr : values + rows.first;
    };
    return {at(slice.bias), at(slice.class_weights), slice.softcap};
  }
};

// Caps logits; `slopes` become the derivatives.
void CapRow(float softcap, int64_t count, float* __restrict row,
            float* __restrict slopes) {
  for (int64_t j = 0; j < count; ++j) {
    const float tanh = Tanh(row[j] / softcap);
    row[j] = softcap * tanh;
    slopes[j] = 1.0F - tanh * tanh;
  }
}

void SubtractSmoothing(float smoothing, const float* __restrict weights,
                       int64_t count, float* __restrict row) {
  if (weights == nullptr) {
    for (int64_t j = 0; j < count; ++j) row[j] = row[j] - smoothing;
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    row[j] = row[j] - smoothing * weights[j];
  }
}

// Turns logits into `p`, in fp32. `slopes` is scratch for a softcap.
void FormRow(const TokenGradient& token, const RowTerms& terms, int64_t count,
             float* __restrict row, float* __restrict slopes) {
  if (terms.bias != nullptr) {
    const float* __restrict bias = terms.bias;
    for (int64_t j = 0; j < count; ++j) row[j] = row[j] + bias[j];
  }
  if (terms.softcap != 0.0F) CapRow(terms.softcap, count, row, slopes);
  for (int64_t j = 0; j < count; ++j) {
    row[j] = Exp(row[j] - token.max) * token.scale;
  }
  if (token.smoothing != 0.0F) {
    SubtractSmoothing(token.smoothing, terms.class_weights, count, row);
  }
  if (token.target_column >= 0 && token.target_column < count) {
    row[token.target_column] = row[token.target_column] - token.target;
  }
  if (terms.softcap == 0.0F) return;
  for (int64_t j = 0; j < count; ++j) row[j] = row[j] * slopes[j];
}

void AddRow(const float* __restrict row, int64_t count,
            float* __restrict sums) {
  for (int64_t j = 0; j < count; ++j) sums[j] = sums[j] + row[j];
}

}  // namespace

std::vector<int64_t> AllTokens(int64_t token_count) {
  std::vector<int64_t> tokens(static_cast<size_t>(token_count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

HeadCall HeadCall::Of(CpuIsa isa, const HeadSlice& slice,
                      const HeadInputs& inputs, std::span<const int64_t> tokens,
                      const HeadBlocks& blocks) {
  return {isa,
          slice,
          inputs,
          tokens,
          {static_cast<int64_t>(tokens.size()), blocks.token_count},
          {slice.row_count, std::min(blocks.row_count, kMostRows)}};
}

const float* HiddenBlock(const HeadCall& call, const BlockRange& tokens,
                         float* scratch) {
  const std::span<const int64_t> indices = call.TokensOf(tokens);
  const int64_t dim = call.slice.dim;
  if (call.inputs.hidden_dtype == DType::kFp32 && LieTogether(indices)) {
    return static_cast<const float*>(call.inputs.hidden) +
           indices.front() * dim;
  }
  WithDenseElement(call.inputs.hidden_dtype, [&]<typename Hidden>() {
    const auto* hidden = static_cast<const Hidden*>(call.inputs.hidden);
    CallFor(call.isa, [&] {
      float* to = scratch;
      for (const int64_t token : indices) {
        WidenRow(hidden + token * dim, dim, to);
        to += dim;
      }
    });
  });
  return scratch;
}

const float* WeightBlock(const HeadCall& call, const BlockRange& rows,
                         float* scratch) {
  const int64_t dim = call.slice.dim;
  if (call.slice.dtype == DType::kFp32) {
    return static_cast<const float*>(call.slice.weights) + rows.first * dim;
  }
  WithDenseElement(call.slice.dtype, [&]<typename Weight>() {
    const auto* weights = static_cast<const Weight*>(call.slice.weights);
    CallFor(call.isa, [&] {
      WidenRow(weights + rows.first * dim, rows.count * dim, scratch);
    });
  });
  return scratch;
}

Operand HiddenOperand(const HeadCall& call, const float* hidden) {
  return {hidden, call.slice.dim, call.inputs.hidden_dtype};
}

Operand WeightOperand(const HeadCall& call, const float* weights) {
  return {weights, call.slice.dim, call.slice.dtype};
}

Operand LogitGradientOperand(const HeadCall& call, const LogitBlock& p) {
  return {p.data, p.stride, call.compute_type()};
}

void FormLogits(const HeadCall& call, const BlockRange& tokens,
                const BlockRange& rows, const float* hidden,
                const float* weights, const LogitBlock& logits,
                float* multiply_scratch) {
  Multiply(call.isa, HiddenOperand(call, hidden),
           Transposed(WeightOperand(call, weights)),
           {tokens.count, rows.count, call.slice.dim}, Into::kWrite,
           logits.data, logits.stride, multiply_scratch);
}

KeptGradient KeptGradient::Of(const HeadCall& call, std::span<std::byte> kept,
                              const HeadBlocks& blocks) {
  if (kept.empty()) return {};
  const HeadKept layout = HeadKept::Of(call.slice, call.inputs.token_count,
                                       call.inputs.hidden_dtype, blocks);
  const int64_t row_bytes = static_cast<int64_t>(call.tokens.size()) *
                            SizeOf(call.compute_type());
  KeptGradient gradient;
  gradient.data = kept.data() + layout.gradient_offset;
  gradient.row_count = layout.RowsIn(static_cast<int64_t>(kept.size()),
                                     call.row_cut, row_bytes);
  if (call.slice.bias != nullptr) {
    gradient.column_sums = reinterpret_cast<float*>(kept.data());
  }
  return gradient;
}

LogitBlock KeptGradient::Block(const HeadCall& call, const BlockRange& tokens,
                               const BlockRange& rows, float* scratch) const {
  const bool in_place = Keeps(rows) && call.compute_type() == DType::kFp32;
  return {in_place ? reinterpret_cast<float*>(data) + Offset(call, tokens, rows)
                   : scratch,
          rows.count};
}

void FormLogitGradient(const HeadCall& call, const HeadMerged& merged,
                       const BlockRange& tokens, const BlockRange& rows,
                       const KeptGradient& kept, const LogitBlock& logits,
                       float* column_sums) {
  const RowTerms terms = RowTerms::Of(call.slice, rows);
  std::vector<float> slopes(
      static_cast<size_t>(terms.softcap == 0.0F ? 0 : rows.count));
  WithDenseElement(call.compute_type(), [&]<typename Compute>() {
    std::vector<Compute> scratch(static_cast<size_t>(rows.count));
    auto* const copies = kept.Keeps(rows)
                             ? reinterpret_cast<Compute*>(kept.data) +
                                   kept.Offset(call, tokens, rows)
                             : nullptr;
    CallFor(call.isa, [&] {
      if (column_sums != nullptr) {
        std::fill(column_sums, column_sums + rows.count, 0.0F);
      }
      for (int64_t i = 0; i < tokens.count; ++i) {
        const int64_t position = tokens.first + i;
        const int64_t token = call.tokens[static_cast<size_t>(position)];
        float* row = logits.row(i);
        FormRow({merged.max_logits[token],
                 merged.probability[token] / merged.exp_sums[token],
                 merged.target[token],
                 merged.smoothing == nullptr ? 0.0F : merged.smoothing[token],
                 call.inputs.targets[token] - rows.first},
                terms, rows.count, row, slopes.data());
        if (column_sums != nullptr) AddRow(row, rows.count, column_sums);
        RoundRow(row, rows.count,
                 copies == nullptr ? scratch.data() : copies + i * rows.count);
      }
    });
  });
}

LogitBlock LoadLogitGradient(const HeadCall& call, const BlockRange& tokens,
                             const BlockRange& rows, const KeptGradient& kept,
                             float* scratch) {
  const LogitBlock block = kept.Block(call, tokens, rows, scratch);
  if (block.data != scratch) return block;
  WithDenseElement(call.compute_type(), [&]<typename Compute>() {
    const auto* from = reinterpret_cast<const Compute*>(kept.data) +
                       kept.Offset(call, tokens, rows);
    CallFor(call.isa,
            [&] { WidenRow(from, tokens.count * rows.count, scratch); });
  });
  return block;
}

}  // namespace rowhouse::kernels::cpu
