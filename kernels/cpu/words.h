#ifndef ROWHOUSE_KERNELS_CPU_WORDS_H_
#define ROWHOUSE_KERNELS_CPU_WORDS_H_

/// Rows as 64-bit words, for content and digests (hash.h).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/hash.h"

namespace rowhouse::kernels::cpu {

inline constexpr int64_t kWordBytes = 8;

/// The secrets of a row's words, by half: two streams for vector code.
struct Secrets {
  explicit Secrets(int64_t row_bytes) {
    const int64_t word_count = (row_bytes + kWordBytes - 1) / kWordBytes;
    low.reserve(static_cast<size_t>(word_count));
    high.reserve(static_cast<size_t>(word_count));
    for (int64_t word = 0; word < word_count; ++word) {
      const ContentSum secret = WordSecret(word);
      low.push_back(secret.low);
      high.push_back(secret.high);
    }
  }

  std::vector<uint64_t> low;
  std::vector<uint64_t> high;
};

inline uint64_t LoadWord(const std::byte* from, int64_t size = kWordBytes) {
  uint64_t word = 0;
  std::memcpy(&word, from, static_cast<size_t>(size));
  return word;
}

/// Sum of `WordContent` over the row at `from`.
inline ContentSum WordsContent(const std::byte* from, int64_t row_bytes,
                               const Secrets& secrets) {
  const int64_t whole_words = row_bytes / kWordBytes;
  const uint64_t* low = secrets.low.data();
  const uint64_t* high = secrets.high.data();
  ContentSum words;
  for (int64_t i = 0; i < whole_words; ++i) {
    words += WordContent(LoadWord(from + i * kWordBytes), {low[i], high[i]});
  }
  if (const int64_t rest = row_bytes % kWordBytes; rest > 0) {
    words += WordContent(LoadWord(from + whole_words * kWordBytes, rest),
                         {low[whole_words], high[whole_words]});
  }
  return words;
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_WORDS_H_
