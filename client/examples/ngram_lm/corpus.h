#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CORPUS_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CORPUS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/examples/ngram_lm/vocabulary.h"

namespace rowhouse::ngram_lm {

struct CorpusOptions {
  int32_t max_vocabulary_size = 4096;  ///< `<unk>` included.
  int64_t block_token_count = 1024;
  /// Of so many blocks in a row the last is held out.
  int64_t held_out_interval = 20;
};

/// A text in ids, in two parts. It is cut into blocks in order, and every
/// `held_out_interval`-th is held out: so both parts are of all the text. What
/// is left behind the last whole block is trained on. The vocabulary is that of
/// the training part.
struct Corpus {
  Vocabulary vocabulary;
  std::vector<int32_t> training;               ///< Its blocks, joined.
  std::vector<std::vector<int32_t>> held_out;  ///< Block by block.
};

/// Held-out tokens before this position of their block are history only: every
/// model has three words to go by.
inline constexpr int64_t kFirstScored = 3;

/// Errors:
///   kInvalidArgument  bad UTF-8, as `SplitWords`; too few words for a held-out
///                     block: says how many there are, and how many it takes; a
///                     vocabulary of less than 2, blocks of no more than
///                     `kFirstScored` tokens, an interval of less than 2.
absl::StatusOr<Corpus> MakeCorpus(std::string_view text,
                                  const CorpusOptions& options = {});

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_CORPUS_H_
