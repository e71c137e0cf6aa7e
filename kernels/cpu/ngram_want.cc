#include "kernels/cpu/ngram_want.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cpu {
namespace {

// Tables of n-grams have fewer than 2^31 rows.
struct Ids {
  std::unique_ptr<uint32_t[]> data;
  size_t size = 0;
};

// How ids are cut into digits.
struct Digits {
  static Digits Of(int64_t table_row_count) {
    constexpr int kMostBits = 11;  // Their counts stay in the nearest cache.
    const int all = std::bit_width(static_cast<uint64_t>(table_row_count - 1));
    const int count = (all + kMostBits - 1) / kMostBits;
    return {count, (all + count - 1) / count};
  }
  size_t value_count() const { return size_t{1} << bits; }
  size_t At(uint32_t id, int digit) const {
    return (id >> (digit * bits)) & (value_count() - 1);
  }

  int count;
  int bits;
};

// Of each token one id, in order and once each: a radix sort, least digit
// first, whose digits are counted as the ids are made.
template <typename IdAt>
Ids SortedIds(std::span<const std::span<const int32_t>> steps,
              size_t token_count, const Digits& digits, IdAt id_at) {
  Ids ids = {std::make_unique_for_overwrite<uint32_t[]>(token_count), 0};
  auto other = std::make_unique_for_overwrite<uint32_t[]>(token_count);
  std::vector<size_t> places(static_cast<size_t>(digits.count) *
                             digits.value_count());
  const auto places_of = [&](int digit) {
    return places.data() + static_cast<size_t>(digit) * digits.value_count();
  };
  for (const std::span<const int32_t> tokens : steps) {
    for (int64_t t = 0; t < std::ssize(tokens); ++t) {
      const auto id = static_cast<uint32_t>(id_at(tokens.data(), t));
      ids.data[ids.size++] = id;
      for (int i = 0; i < digits.count; ++i) {
        ++places_of(i)[digits.At(id, i)];
      }
    }
  }
  for (int i = 0; i < digits.count; ++i) {
    size_t* const place = places_of(i);
    size_t next = 0;
    for (size_t value = 0; value < digits.value_count(); ++value) {
      next += std::exchange(place[value], next);
    }
    for (size_t j = 0; j < ids.size; ++j) {
      const uint32_t id = ids.data[j];
      other[place[digits.At(id, i)]++] = id;
    }
    std::swap(ids.data, other);
  }
  uint32_t* const first = ids.data.get();
  ids.size = static_cast<size_t>(std::unique(first, first + ids.size) - first);
  return ids;
}

}  // namespace

int64_t NgramWantList(Executor& executor,
                      std::span<const std::span<const int32_t>> steps,
                      int64_t table_row_count, std::span<int64_t> want) {
  const NgramLayout layout = NgramLayout::Of(table_row_count);
  const Digits digits = Digits::Of(table_row_count);
  size_t token_count = 0;
  for (const std::span<const int32_t> tokens : steps) {
    token_count += tokens.size();
  }
  // All rows of bigrams are before those of trigrams.
  std::array<Ids, 2> parts;
  executor.ParallelFor(2, 1, [&](int64_t begin, int64_t end) {
    for (auto part = static_cast<size_t>(begin);
         part < static_cast<size_t>(end); ++part) {
      parts[part] = SortedIds(
          steps, token_count, digits, [&](const int32_t* tokens, int64_t t) {
            return part == 0 ? BigramRowId(tokens, t, layout)
                             : TrigramRowId(tokens, t, layout);
          });
    }
  });
  int64_t count = 0;
  for (const Ids& ids : parts) {
    const std::span<int64_t> room = want.first(std::min(ids.size, want.size()));
    std::copy_n(ids.data.get(), room.size(), room.data());
    want = want.subspan(room.size());
    count += static_cast<int64_t>(ids.size);
  }
  return count;
}

}  // namespace rowhouse::kernels::cpu
