#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_VOCABULARY_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_VOCABULARY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace rowhouse::ngram_lm {

/// The words that a model knows, and one entry, `<unk>`, for all others.
///
/// Thread-compatible.
class Vocabulary {
 public:
  static constexpr int32_t kUnknown = 0;  ///< Id of `<unk>`.

  /// `<unk>` and the most frequent of `words`, in order of frequency; of equals
  /// the one that comes first. At most `max_size` entries in all.
  ///
  /// REQUIRES: `max_size >= 1`.
  Vocabulary(std::span<const std::string> words, int32_t max_size);

  int32_t size() const { return static_cast<int32_t>(words_.size()); }

  /// REQUIRES: `0 <= id < size()`.
  const std::string& word(int32_t id) const {
    return words_[static_cast<size_t>(id)];
  }

  /// The ids of `words`.
  std::vector<int32_t> Encode(std::span<const std::string> words) const;

 private:
  std::vector<std::string> words_;
  absl::flat_hash_map<std::string, int32_t> ids_;
};

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_VOCABULARY_H_
