#include "kernels/cpu/head.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/head_block.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/tanh.h"

namespace rowhouse::kernels::cpu {
namespace {

// Partial results by lane, in vectors that every CPU has; wider CPUs take as
// many steps, which do not hold them up.
using Lanes [[gnu::vector_size(16)]] = float;
constexpr int64_t kVectors = 4;
constexpr int64_t kLanes = 4 * kVectors;

Lanes Load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

float LargestOf(const float* __restrict row, int64_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const Lanes least = {kLeast, kLeast, kLeast, kLeast};
  Lanes largest[kVectors] = {least, least, least, least};
  int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
    for (int64_t i = 0; i < kVectors; ++i) {
      const Lanes x = Load(row + first + 4 * i);
      largest[i] = x > largest[i] ? x : largest[i];
    }
  }
  float all = kLeast;
  for (const Lanes& lanes : largest) {
    for (int64_t i = 0; i < 4; ++i) all = std::max(all, lanes[i]);
  }
  for (; first < count; ++first) all = row[first] > all ? row[first] : all;
  return all;
}

float SumOf(const float* __restrict row, int64_t count) {
  Lanes sums[kVectors] = {};
  int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
    for (int64_t i = 0; i < kVectors; ++i) {
      sums[i] = sums[i] + Load(row + first + 4 * i);
    }
  }
  for (int64_t i = 0; i < count - first; ++i) {
    sums[i / 4][i % 4] = sums[i / 4][i % 4] + row[first + i];
  }
  const Lanes quarter = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

// Statistics of one token's logits in a block; the row becomes its
// exponentials.
HeadPair StatisticsOf(float* __restrict row, int64_t count) {
  HeadPair pair;
  pair.max = LargestOf(row, count);
  const float shift = pair.Shift();
  for (int64_t j = 0; j < count; ++j) row[j] = Exp(row[j] - shift);
  pair.sum = SumOf(row, count);
  return pair;
}

void AddBias(const HeadCall& call, const BlockRange& rows,
             float* __restrict row) {
  if (call.slice.bias == nullptr) return;
  const float* __restrict bias = call.slice.bias + rows.first;
  for (int64_t j = 0; j < rows.count; ++j) row[j] = row[j] + bias[j];
}

void CapLogits(const HeadCall& call, const BlockRange& rows,
               float* __restrict row) {
  const float softcap = call.slice.softcap;
  if (softcap == 0.0F) return;
  for (int64_t j = 0; j < rows.count; ++j) {
    row[j] = softcap * Tanh(row[j] / softcap);
  }
}

// The sum of a block's weighted logits. `products` is scratch.
float WeightedSumOf(const HeadCall& call, const BlockRange& rows,
                    const float* __restrict row, float* __restrict products) {
  if (call.slice.class_weights == nullptr) return SumOf(row, rows.count);
  const float* __restrict weights = call.slice.class_weights + rows.first;
  for (int64_t j = 0; j < rows.count; ++j) {
    products[j] = weights[j] == 0.0F ? 0.0F : weights[j] * row[j];
  }
  return SumOf(products, rows.count);
}

int64_t FirstOf(float value, const float* row, int64_t count) {
  const float* const found = std::find(row, row + count, value);
  return found == row + count ? -1 : found - row;
}

// What is asked of a token's logits beside maximum and sum. `before` is the
// maximum of the rows before the block.
void MergeAskedFor(const HeadCall& call, const BlockRange& rows, int64_t token,
                   float before, const float* row, float* scratch,
                   const HeadStatistics& statistics) {
  if (statistics.weighted_logit_sums != nullptr) {
    float& sum = statistics.weighted_logit_sums[token];
    sum = Canonical(sum + WeightedSumOf(call, rows, row, scratch));
  }
  if (statistics.predicted == nullptr) return;
  int64_t& predicted = statistics.predicted[token];
  const float largest = LargestOf(row, rows.count);
  if (predicted >= 0 && !(largest > before)) return;
  const int64_t first = FirstOf(largest, row, rows.count);
  if (first >= 0) predicted = rows.first + first;
}

bool HasTerms(const HeadCall& call, const HeadStatistics& statistics) {
  return call.slice.softcap != 0.0F ||
         statistics.weighted_logit_sums != nullptr ||
         statistics.predicted != nullptr;
}

// Finishes the logits of a block, and merges what is asked for beside maximum
// and sum. Apart from the loop of plain calls, which it would slow down.
void MergeTerms(const HeadCall& call, const BlockRange& tokens,
                const BlockRange& rows, const LogitBlock& logits,
                const HeadStatistics& statistics) {
  std::vector<float> scratch(static_cast<size_t>(rows.count));
  CallFor(call.isa, [&] {
    for (int64_t i = 0; i < tokens.count; ++i) {
      const int64_t token = tokens.first + i;
      float* row = logits.row(i);
      AddBias(call, rows, row);
      CapLogits(call, rows, row);
      MergeAskedFor(call, rows, token, statistics.max_logits[token], row,
                    scratch.data(), statistics);
    }
  });
}

// Merges the logits of a block into the statistics of its tokens. Which NaN a
// sum of two gives is the compiler's choice: stored are canonical ones.
void MergeBlock(const HeadCall& call, const BlockRange& tokens,
                const BlockRange& rows, const LogitBlock& logits,
                const HeadStatistics& statistics) {
  const bool has_terms = HasTerms(call, statistics);
  if (has_terms) MergeTerms(call, tokens, rows, logits, statistics);
  CallFor(call.isa, [&] {
    for (int64_t i = 0; i < tokens.count; ++i) {
      const int64_t token = tokens.first + i;
      float* row = logits.row(i);
      if (!has_terms) AddBias(call, rows, row);
      const int64_t target = call.inputs.targets[token] - rows.first;
      if (target >= 0 && target < rows.count) {
        statistics.target_logits[token] = Canonical(row[target]);
      }
      const HeadPair block = StatisticsOf(row, rows.count);
      const HeadPair before = {statistics.max_logits[token],
                               statistics.exp_sums[token]};
      const HeadPair merged =
          rows.first == 0 ? block : before.MergedWith(block);
      statistics.max_logits[token] = Canonical(merged.max);
      statistics.exp_sums[token] = Canonical(merged.sum);
    }
  });
}

void ClearStatistics(const HeadStatistics& statistics, int64_t token_count) {
  std::fill(statistics.max_logits, statistics.max_logits + token_count,
            -std::numeric_limits<float>::infinity());
  std::fill(statistics.exp_sums, statistics.exp_sums + token_count, 0.0F);
  std::fill(statistics.target_logits, statistics.target_logits + token_count,
            0.0F);
  if (statistics.weighted_logit_sums != nullptr) {
    std::fill(statistics.weighted_logit_sums,
              statistics.weighted_logit_sums + token_count, 0.0F);
  }
  if (statistics.predicted != nullptr) {
    std::fill(statistics.predicted, statistics.predicted + token_count, -1);
  }
}

// Clears the rows of tokens that are left out; of all without a vocabulary.
void ClearHiddenGradient(Executor& executor, const HeadCall& call,
                         const HeadMerged& merged, float* hidden_gradient) {
  const int64_t dim = call.slice.dim;
  const bool no_rows = call.slice.row_count == 0;
  executor.ParallelFor(call.inputs.token_count,
                       RowGrain(dim * int64_t{sizeof(float)}),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t t = begin; t < end; ++t) {
                           if (!no_rows && merged.TakesPart(t)) continue;
                           std::fill(hidden_gradient + t * dim,
                                     hidden_gradient + (t + 1) * dim, 0.0F);
                         }
                       });
}

// Writes the hidden gradient of one token block, and what is kept of it.
void HiddenGradientOfBlock(const HeadCall& call, const HeadMerged& merged,
                           const KeptGradient& kept, int64_t token_block,
                           float* scratch, float* hidden_gradient) {
  const int64_t dim = call.slice.dim;
  const BlockRange tokens = call.token_cut[token_block];
  float* const hidden_scratch = scratch + call.multiply_floats();
  float* const weight_scratch = hidden_scratch + call.hidden_floats();
  float* const p_scratch = weight_scratch + call.weight_floats();
  float* const sum = p_scratch + call.logit_floats();
  const float* hidden = HiddenBlock(call, tokens, hidden_scratch);
  for (int64_t b = 0; b < call.row_cut.count(); ++b) {
    const BlockRange rows = call.row_cut[b];
    const float* weights = WeightBlock(call, rows, weight_scratch);
    const LogitBlock p = kept.Block(call, tokens, rows, p_scratch);
    FormLogits(call, tokens, rows, hidden, weights, p, scratch);
    FormLogitGradient(call, merged, tokens, rows, kept, p,
                      kept.ColumnSums(call, token_block, rows));
    Multiply(call.isa, LogitGradientOperand(call, p),
             WeightOperand(call, weights), {tokens.count, dim, rows.count},
             b == 0 ? Into::kWrite : Into::kAdd, sum, dim, scratch);
  }
  const float* from = sum;
  for (const int64_t token : call.TokensOf(tokens)) {
    std::copy(from, from + dim, hidden_gradient + token * dim);
    from += dim;
  }
}

}  // namespace

absl::Status HeadTokenStatistics(Executor& executor, ScratchPool& pool,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadBlocks& blocks,
                                 const HeadStatistics& statistics) {
  ClearStatistics(statistics, inputs.token_count);
  const std::vector<int64_t> tokens = AllTokens(inputs.token_count);
  const HeadCall call =
      HeadCall::Of(executor.isa(), slice, inputs, tokens, blocks);
  return ForEachBlock(
      executor, pool, call.token_cut.count(),
      call.multiply_floats() + call.hidden_floats() + call.weight_floats() +
          call.logit_floats(),
      [&](int64_t token_block, float* scratch) {
        const BlockRange block = call.token_cut[token_block];
        float* const hidden_scratch = scratch + call.multiply_floats();
        float* const weight_scratch = hidden_scratch + call.hidden_floats();
        float* const logit_scratch = weight_scratch + call.weight_floats();
        const float* hidden = HiddenBlock(call, block, hidden_scratch);
        for (int64_t b = 0; b < call.row_cut.count(); ++b) {
          const BlockRange rows = call.row_cut[b];
          const float* weights = WeightBlock(call, rows, weight_scratch);
          const LogitBlock logits = {logit_scratch, rows.count};
          FormLogits(call, block, rows, hidden, weights, logits, scratch);
          MergeBlock(call, block, rows, logits, statistics);
        }
      });
}

absl::Status HeadHiddenGradient(Executor& executor, ScratchPool& pool,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<std::byte> kept,
                                float* hidden_gradient) {
  const std::vector<int64_t> tokens =
      TokensWithGradient(merged, inputs.token_count);
  const HeadCall call =
      HeadCall::Of(executor.isa(), slice, inputs, tokens, blocks);
  const KeptGradient keep = KeptGradient::Of(call, kept, blocks);
  ClearHiddenGradient(executor, call, merged, hidden_gradient);
  if (slice.row_count == 0) return absl::OkStatus();
  return ForEachBlock(executor, pool, call.token_cut.count(),
                      call.multiply_floats() + 2 * call.hidden_floats() +
                          call.weight_floats() + call.logit_floats(),
                      [&](int64_t token_block, float* scratch) {
                        HiddenGradientOfBlock(call, merged, keep, token_block,
                                              scratch, hidden_gradient);
                      });
}

}  // namespace rowhouse::kernels::cpu
