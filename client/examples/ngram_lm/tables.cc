#include "client/examples/ngram_lm/tables.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "rowhouse/cluster.h"
#include "rowhouse/types.h"

namespace rowhouse::ngram_lm {
namespace {

using client::DType;

constexpr int64_t kPullBytes = int64_t{16} << 20;

// What both have in common. A mean over all trainers' tokens is a sum here:
// the loss is divided by their count.
client::TableSpec CommonSpec(const TableSizes& sizes) {
  client::TableSpec spec;
  spec.dim = sizes.dim;
  spec.trainer_count = sizes.trainer_count;
  spec.gradient_reduction = client::GradientReduction::kSum;
  spec.max_pull_bytes = kPullBytes;
  return spec;
}

client::TableSpec WordSpec(const TableSizes& sizes, const Recipe& recipe) {
  client::TableSpec spec = CommonSpec(sizes);
  spec.row_count = sizes.vocabulary_size;
  spec.row_dtype = DType::kBf16;  // With a master, below.
  spec.gradient_dtype = DType::kFp32;
  spec.shard_count = sizes.word_shard_count;
  spec.initializer = {client::Initializer::Kind::kUniform, /*seed=*/1,
                      recipe.initial_bound};
  spec.max_contribution_row_count = sizes.step_token_count;
  spec.max_part_count = 2;  // The head's, the embedding's.
  client::DenseTableSpec dense;
  dense.has_master = true;
  dense.has_bias = true;
  dense.max_head_token_count =
      std::max(sizes.step_token_count, sizes.call_token_count);
  spec.dense = dense;
  return spec;
}

client::TableSpec NgramSpec(const TableSizes& sizes) {
  client::TableSpec spec = CommonSpec(sizes);
  spec.row_count = sizes.ngram_row_count;
  spec.row_dtype = DType::kBf16;
  spec.gradient_dtype = DType::kBf16;
  spec.shard_count = sizes.ngram_shard_count;
  spec.max_contribution_row_count = 2 * kLongestCycle * sizes.step_token_count;
  client::NgramMetadata ngram;
  ngram.sign_seed = 1;
  ngram.sign_row_count = 8192;
  spec.ngram = ngram;
  return spec;
}

}  // namespace

absl::Status CreateTables(client::Cluster& cluster, const TableSizes& sizes,
                          const Recipe& recipe) {
  const absl::Status made =
      cluster.CreateTable(kWordTable, WordSpec(sizes, recipe)).status();
  if (!made.ok()) return made;
  return cluster.CreateTable(kNgramTable, NgramSpec(sizes)).status();
}

}  // namespace rowhouse::ngram_lm
