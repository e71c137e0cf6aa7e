#include "client/examples/ngram_lm/vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace rowhouse::ngram_lm {
namespace {

struct Counted {
  const std::string* word;
  int64_t count;
};

// The distinct words, in the order of their first appearance.
std::vector<Counted> Count(std::span<const std::string> words) {
  absl::flat_hash_map<std::string, size_t> places;
  std::vector<Counted> counted;
  for (const std::string& word : words) {
    const auto [entry, fresh] = places.try_emplace(word, counted.size());
    if (fresh) counted.push_back({&word, 0});
    ++counted[entry->second].count;
  }
  return counted;
}

}  // namespace

Vocabulary::Vocabulary(std::span<const std::string> words, int32_t max_size) {
  std::vector<Counted> counted = Count(words);
  std::stable_sort(
      counted.begin(), counted.end(),
      [](const Counted& a, const Counted& b) { return a.count > b.count; });
  words_.emplace_back("<unk>");
  for (const Counted& entry : counted) {
    if (words_.size() >= static_cast<size_t>(max_size)) break;
    ids_.emplace(*entry.word, static_cast<int32_t>(words_.size()));
    words_.push_back(*entry.word);
  }
}

std::vector<int32_t> Vocabulary::Encode(
    std::span<const std::string> words) const {
  std::vector<int32_t> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) {
    const auto entry = ids_.find(word);
    ids.push_back(entry == ids_.end() ? kUnknown : entry->second);
  }
  return ids;
}

}  // namespace rowhouse::ngram_lm
