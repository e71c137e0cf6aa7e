#include "kernels/cpu/head_block.h"

#include <cstring>
#include <numeric>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/exp.h"

namespace rowhouse::kernels::cpu {
namespace {

template <typename From>
void WidenRow(const From* __restrict from, int64_t count,
              float* __restrict to) {
  for (int64_t j = 0; j < count; ++j) to[j] = Widen(from[j]);
}

template <typename To>
void NarrowRow(const float* __restrict from, int64_t count, To* __restrict to) {
  for (int64_t j = 0; j < count; ++j) to[j] = Narrow<To>(from[j]);
}

bool LieTogether(std::span<const int64_t> tokens) {
  return tokens.back() - tokens.front() + 1 ==
         static_cast<int64_t>(tokens.size());
}

// One token's share of the loss's gradient.
struct TokenGradient {
  float max;
  float scale;
  float upstream;
  int64_t target_column;  // Of the block; any other value: not there.
};

// Turns logits into `p`, in fp32.
void FormRow(const TokenGradient& token, const float* __restrict bias,
             int64_t count, float* __restrict row) {
  if (bias != nullptr) {
    for (int64_t j = 0; j < count; ++j) row[j] = row[j] + bias[j];
  }
  for (int64_t j = 0; j < count; ++j) {
    row[j] = Exp(row[j] - token.max) * token.scale;
  }
  if (token.target_column >= 0 && token.target_column < count) {
    row[token.target_column] = row[token.target_column] - token.upstream;
  }
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

HeadCall HeadCall::Of(const HeadSlice& slice, const HeadInputs& inputs,
                      std::span<const int64_t> tokens,
                      const HeadBlocks& blocks) {
  return {slice,
          inputs,
          tokens,
          {static_cast<int64_t>(tokens.size()), blocks.token_count},
          {slice.row_count, blocks.row_count}};
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
    float* to = scratch;
    for (const int64_t token : indices) {
      WidenRow(hidden + token * dim, dim, to);
      to += dim;
    }
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
    WidenRow(static_cast<const Weight*>(call.slice.weights) + rows.first * dim,
             rows.count * dim, scratch);
  });
  return scratch;
}

void FormLogits(const HeadCall& call, const BlockRange& tokens,
                const BlockRange& rows, const float* hidden,
                const float* weights, float* logits) {
  const int64_t dim = call.slice.dim;
  Multiply({hidden, dim}, {weights, dim, true}, {tokens.count, rows.count, dim},
           Into::kWrite, logits, rows.count);
}

KeptGradient KeptGradient::Of(const HeadCall& call, std::span<std::byte> kept,
                              const HeadBlocks& blocks) {
  if (kept.empty()) return {};
  const HeadKept layout = HeadKept::Of(call.slice, call.inputs.token_count,
                                       call.inputs.hidden_dtype, blocks);
  if (call.slice.bias == nullptr) return {kept.data(), nullptr};
  return {kept.data(),
          reinterpret_cast<float*>(kept.data() + layout.column_sums_offset)};
}

void FormLogitGradient(const HeadCall& call, const HeadMerged& merged,
                       const BlockRange& tokens, const BlockRange& rows,
                       const KeptGradient& kept, float* logits,
                       float* column_sums) {
  const float* bias =
      call.slice.bias == nullptr ? nullptr : call.slice.bias + rows.first;
  if (column_sums != nullptr) {
    std::fill(column_sums, column_sums + rows.count, 0.0F);
  }
  WithDenseElement(call.compute_type(), [&]<typename Compute>() {
    std::vector<Compute> rounded(static_cast<size_t>(rows.count));
    for (int64_t i = 0; i < tokens.count; ++i) {
      const int64_t position = tokens.first + i;
      const int64_t token = call.tokens[static_cast<size_t>(position)];
      float* row = logits + i * rows.count;
      FormRow({merged.max_logits[token],
               merged.upstream[token] / merged.exp_sums[token],
               merged.upstream[token], call.inputs.targets[token] - rows.first},
              bias, rows.count, row);
      if (column_sums != nullptr) AddRow(row, rows.count, column_sums);
      NarrowRow(row, rows.count, rounded.data());
      WidenRow(rounded.data(), rows.count, row);
      if (kept.data == nullptr) continue;
      std::memcpy(reinterpret_cast<Compute*>(kept.data) +
                      position * call.slice.row_count + rows.first,
                  rounded.data(), rounded.size() * sizeof(Compute));
    }
  });
}

void LoadLogitGradient(const HeadCall& call, const BlockRange& tokens,
                       const BlockRange& rows, const KeptGradient& kept,
                       float* p) {
  WithDenseElement(call.compute_type(), [&]<typename Compute>() {
    for (int64_t i = 0; i < tokens.count; ++i) {
      WidenRow(reinterpret_cast<const Compute*>(kept.data) +
                   (tokens.first + i) * call.slice.row_count + rows.first,
               rows.count, p + i * rows.count);
    }
  });
}

}  // namespace rowhouse::kernels::cpu
