#include "kernels/cpu/merge.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>
#include <vector>

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kGrain = 8192;
constexpr int kMaxDigitBits = 11;

struct Digit {
  int shift;
  int bits;

  size_t Of(int64_t slot) const {
    return static_cast<size_t>(slot >> shift) & ((size_t{1} << bits) - 1);
  }
};

// Equal shares of the entries, each counted and moved by one thread at a time.
struct Shares {
  int64_t size;
  int64_t count;

  std::pair<int64_t, int64_t> Range(int64_t share, int64_t end) const {
    return {share * size, std::min(end, (share + 1) * size)};
  }
};

bool IsSorted(Executor& executor, const EntryList& entries) {
  std::atomic<bool> sorted = true;
  executor.ParallelFor(entries.size - 1, kGrain,
                       [&](int64_t begin, int64_t end) {
                         const Entry* list = entries.data.get();
                         for (int64_t i = begin; i < end; ++i) {
                           if (list[i].slot > list[i + 1].slot) {
                             sorted.store(false, std::memory_order_relaxed);
                             return;
                           }
                         }
                       });
  return sorted.load(std::memory_order_relaxed);
}

// Bits that hold the largest slot.
int SlotBits(Executor& executor, const EntryList& entries) {
  std::atomic<int64_t> all_bits = 0;
  executor.ParallelFor(entries.size, kGrain, [&](int64_t begin, int64_t end) {
    int64_t bits = 0;
    for (int64_t i = begin; i < end; ++i) bits |= entries.data[i].slot;
    all_bits.fetch_or(bits, std::memory_order_relaxed);
  });
  return std::bit_width(
      static_cast<uint64_t>(all_bits.load(std::memory_order_relaxed)));
}

// Turns counts [share][value] into the place where each share's first entry of
// each value goes: by value, then by share, which keeps equal entries in order.
void CountsToPlaces(std::vector<int64_t>& counts, int64_t share_count,
                    size_t value_count) {
  int64_t place = 0;
  for (size_t value = 0; value < value_count; ++value) {
    for (int64_t share = 0; share < share_count; ++share) {
      int64_t& cell = counts[static_cast<size_t>(share) * value_count + value];
      place += std::exchange(cell, place);
    }
  }
}

void SortByDigit(Executor& executor, const Shares& shares, Digit digit,
                 EntryList& from, EntryList& to) {
  const size_t value_count = size_t{1} << digit.bits;
  std::vector<int64_t> counts(static_cast<size_t>(shares.count) * value_count);
  const auto for_each_share = [&](auto visit) {
    executor.ParallelFor(shares.count, 1, [&](int64_t first, int64_t last) {
      for (int64_t share = first; share < last; ++share) {
        int64_t* cells =
            counts.data() + static_cast<size_t>(share) * value_count;
        const auto [begin, end] = shares.Range(share, from.size);
        for (int64_t i = begin; i < end; ++i) {
          visit(cells[digit.Of(from.data[i].slot)], from.data[i]);
        }
      }
    });
  };
  for_each_share([](int64_t& cell, const Entry&) { ++cell; });
  CountsToPlaces(counts, shares.count, value_count);
  for_each_share(
      [&](int64_t& cell, const Entry& entry) { to.data[cell++] = entry; });
}

}  // namespace

void SortBySlot(Executor& executor, EntryList& entries) {
  if (IsSorted(executor, entries)) return;
  const int slot_bits = SlotBits(executor, entries);
  const int pass_count = (slot_bits + kMaxDigitBits - 1) / kMaxDigitBits;
  const int digit_bits = (slot_bits + pass_count - 1) / pass_count;
  const int64_t share_count =
      std::clamp<int64_t>(entries.size / kGrain, 1, executor.concurrency());
  const int64_t share_size = (entries.size + share_count - 1) / share_count;
  EntryList other(entries.size);
  for (int pass = 0; pass < pass_count; ++pass) {
    SortByDigit(executor, {share_size, share_count},
                {pass * digit_bits, digit_bits}, entries, other);
    std::swap(entries, other);
  }
}

EntryList MergeParts(Executor& executor, std::span<const GradientPart> parts,
                     int64_t row_bytes) {
  int64_t count = 0;
  for (const GradientPart& part : parts) count += part.row_count;
  EntryList entries(count);
  Entry* to = entries.data.get();
  for (const GradientPart& part : parts) {
    const auto rows = reinterpret_cast<uintptr_t>(part.rows);
    executor.ParallelFor(
        part.row_count, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            to[i] = {part.slots[i],
                     rows + static_cast<uintptr_t>(i * row_bytes)};
          }
        });
    to += part.row_count;
  }
  SortBySlot(executor, entries);
  return entries;
}

}  // namespace rowhouse::kernels::cpu
