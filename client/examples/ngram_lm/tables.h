#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TABLES_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TABLES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/examples/ngram_lm/recipe.h"
#include "rowhouse/cluster.h"

namespace rowhouse::ngram_lm {

/// The dense table: one row a word, the token embedding and the head's weights
/// in one.
inline constexpr char kWordTable[] = "words";

/// The sparse table of hashed bigrams and trigrams.
inline constexpr char kNgramTable[] = "ngrams";

/// Steps of the longest cycle that the schedule has.
inline constexpr int64_t kLongestCycle = 4;

/// What the tables' specs follow from.
struct TableSizes {
  int32_t vocabulary_size = 0;
  int32_t dim = 0;
  int64_t ngram_row_count = 0;
  int32_t ngram_shard_count = 0;
  int32_t word_shard_count = 0;
  int32_t trainer_count = 0;
  int64_t step_token_count = 0;  ///< Of one trainer.
  int64_t call_token_count = 0;  ///< Most of one head call.
};

/// Creates both tables, or finds them created alike: every trainer may.
///
/// Errors: those of `Cluster::CreateTable`.
absl::Status CreateTables(client::Cluster& cluster, const TableSizes& sizes,
                          const Recipe& recipe);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TABLES_H_
