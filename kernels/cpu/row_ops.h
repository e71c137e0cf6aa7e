#ifndef ROWHOUSE_KERNELS_CPU_ROW_OPS_H_
#define ROWHOUSE_KERNELS_CPU_ROW_OPS_H_

/// Loops over the columns of a row, written so that compilers make vector code
/// of them. Pointers of one call never overlap.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/element.h"

namespace rowhouse::kernels::cpu {

/// Rows for a loop's body to take at once: enough bytes to pay for a task.
inline int64_t RowGrain(int64_t row_bytes) {
  constexpr int64_t kGrainBytes = 64 << 10;
  return std::clamp(kGrainBytes / std::max<int64_t>(row_bytes, 1), int64_t{16},
                    int64_t{4096});
}

/// Rows to fetch ahead of the one at work, to cover a memory access.
inline constexpr int64_t kRowsAhead = 12;

/// Asks for the first lines of a row; the hardware follows with the others.
inline void PrefetchRow(const void* row, int64_t row_bytes) {
  constexpr int64_t kLineBytes = 64;
  constexpr int64_t kMostBytes = 512;
  const auto* bytes = static_cast<const char*>(row);
  const int64_t end = std::min(row_bytes, kMostBytes);
  for (int64_t at = 0; at < end; at += kLineBytes)
    __builtin_prefetch(bytes + at);
}

/// The run-sum (arithmetic.h) of one row's entries. Scratch of two rows;
/// allocate it once per loop body.
class RowRunSum {
 public:
  explicit RowRunSum(int64_t dim)
      : total_(static_cast<size_t>(dim)), chunk_(static_cast<size_t>(dim)) {}

  void Start() { count_ = 0; }

  /// Adds an entry: `entry(j)` is its column `j`.
  template <typename Entry>
  void Add(const Entry& entry) {
    const auto dim = static_cast<int64_t>(total_.size());
    float* __restrict chunk = chunk_.data();
    if (count_ % kRunChunk == 0) {
      for (int64_t j = 0; j < dim; ++j) chunk[j] = 0.0F + entry(j);
    } else {
      for (int64_t j = 0; j < dim; ++j) chunk[j] = chunk[j] + entry(j);
    }
    if (++count_ % kRunChunk == 0) FoldChunk();
  }

  /// The sum; call once. A single chunk is the sum itself: adding it to +0
  /// changes no bit, for it is never -0. Valid until the next `Start`.
  const float* Finish() {
    if (count_ < kRunChunk) return chunk_.data();
    if (count_ % kRunChunk != 0) FoldChunk();
    return total_.data();
  }

 private:
  void FoldChunk() {
    const auto dim = static_cast<int64_t>(total_.size());
    const float* __restrict chunk = chunk_.data();
    float* __restrict total = total_.data();
    if (count_ <= kRunChunk) {
      for (int64_t j = 0; j < dim; ++j) total[j] = chunk[j];
    } else {
      for (int64_t j = 0; j < dim; ++j) total[j] = total[j] + chunk[j];
    }
  }

  std::vector<float> total_;
  std::vector<float> chunk_;
  int64_t count_ = 0;
};

namespace internal {

// Folds by halves; partial sums from `width` on are +0 and left out.
template <int64_t kOffset>
void FoldPartials(float* partial, int64_t width) {
  if (width > kOffset) {
    for (int64_t i = 0; i < kOffset; ++i) {
      partial[i] = partial[i] + partial[i + kOffset];
    }
  }
  if constexpr (kOffset > 1) FoldPartials<kOffset / 2>(partial, width);
}

}  // namespace internal

/// Sum of squares of a row in the order of arithmetic.h.
inline float SumOfSquares(const float* __restrict row, int64_t dim) {
  alignas(64) float partial[kSquarePartials];
  const auto width = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::min(dim, kSquarePartials))));
  std::memset(partial, 0, static_cast<size_t>(width) * sizeof(float));
  int64_t first = 0;
  for (; first + kSquarePartials <= dim; first += kSquarePartials) {
    for (int64_t i = 0; i < kSquarePartials; ++i) {
      partial[i] = partial[i] + row[first + i] * row[first + i];
    }
  }
  for (int64_t i = 0; i < dim - first; ++i) {
    partial[i] = partial[i] + row[first + i] * row[first + i];
  }
  internal::FoldPartials<kSquarePartials / 2>(partial, width);
  return partial[0];
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_ROW_OPS_H_
