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

/// For loops that do no more than pass over rows on their way to or from a
/// wire: of one message they are one thread's, for waking another takes as
/// long.
inline int64_t WireGrain(int64_t row_count, int64_t row_bytes) {
  constexpr int64_t kMessageBytes = 1 << 20;
  return row_count * row_bytes <= kMessageBytes
             ? std::max<int64_t>(row_count, 1)
             : RowGrain(row_bytes);
}

/// Rows to fetch ahead of the one at work, to cover a memory access.
inline constexpr int64_t kRowsAhead = 12;

/// Asks for some lines of a row; the hardware follows with the others.
inline void PrefetchRow(const void* row, int64_t row_bytes) {
  constexpr int64_t kStrideBytes = 512;
  constexpr int64_t kMostBytes = 4096;
  const auto* bytes = static_cast<const char*>(row);
  const int64_t end = std::min(row_bytes, kMostBytes);
  for (int64_t at = 0; at < end; at += kStrideBytes) {
    __builtin_prefetch(bytes + at, /*rw=*/0, /*locality=*/2);
  }
}

/// Columns worked on between one request for lines ahead and the next. A core
/// waits on few lines at a time, so what comes next is asked for bit by bit.
inline constexpr int64_t kBlockColumns = 256;

/// Asks for the lines of columns `[begin, end)` of a row, as far as its `dim`.
template <typename T>
void PrefetchColumns(const T* row, int64_t begin, int64_t end, int64_t dim) {
  constexpr int64_t kLineElements = 64 / int64_t{sizeof(T)};
  end = std::min(end, dim);
  for (int64_t j = begin; j < end; j += kLineElements) {
    __builtin_prefetch(row + j);
  }
}

/// Asks for the lines of a block of a row's `dim` columns.
template <typename T>
void PrefetchBlock(const T* row, int64_t first_column, int64_t dim) {
  PrefetchColumns(row, first_column, first_column + kBlockColumns, dim);
}

/// What loops over blocks do before each where they fetch nothing.
inline void FetchNothing(int64_t /*first_column*/) {}

/// The run-sum (arithmetic.h) of one row's entries. Scratch of two rows;
/// allocate it once per loop body.
class RowRunSum {
 public:
  explicit RowRunSum(int64_t dim)
      : total_(static_cast<size_t>(dim)), chunk_(static_cast<size_t>(dim)) {}

  void Start() { count_ = 0; }

  /// Adds an entry: `entry(j)` is its column `j`. Calls `before(j)` before each
  /// block of columns.
  template <typename Entry, typename Before>
  void Add(const Entry& entry, const Before& before) {
    const auto dim = static_cast<int64_t>(total_.size());
    float* __restrict chunk = chunk_.data();
    const bool first = count_ % kRunChunk == 0;
    for (int64_t begin = 0; begin < dim; begin += kBlockColumns) {
      before(begin);
      const int64_t end = std::min(dim, begin + kBlockColumns);
      if (first) {
        for (int64_t j = begin; j < end; ++j) chunk[j] = 0.0F + entry(j);
      } else {
        for (int64_t j = begin; j < end; ++j) chunk[j] = chunk[j] + entry(j);
      }
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

/// Sum of squares of a row whose column `j` is `column(j)`, in the order of
/// arithmetic.h. Calls `before(j)` before each block of columns.
template <typename Column, typename Before>
float SumOfSquares(int64_t dim, const Column& column, const Before& before) {
  static_assert(kSquarePartials == kBlockColumns);
  alignas(64) float partial[kSquarePartials];
  const auto width = static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::min(dim, kSquarePartials))));
  int64_t first = 0;
  before(first);
  if (dim >= kSquarePartials) {  // A square added to +0 is the square.
    for (int64_t i = 0; i < kSquarePartials; ++i) {
      partial[i] = column(i) * column(i);
    }
    first = kSquarePartials;
  } else {
    std::memset(partial, 0, static_cast<size_t>(width) * sizeof(float));
  }
  for (; first + kSquarePartials <= dim; first += kSquarePartials) {
    before(first);
    for (int64_t i = 0; i < kSquarePartials; ++i) {
      partial[i] = partial[i] + column(first + i) * column(first + i);
    }
  }
  for (int64_t i = 0; i < dim - first; ++i) {
    partial[i] = partial[i] + column(first + i) * column(first + i);
  }
  internal::FoldPartials<kSquarePartials / 2>(partial, width);
  return partial[0];
}

inline float SumOfSquares(const float* row, int64_t dim) {
  return SumOfSquares(
      dim, [row](int64_t j) { return row[j]; }, FetchNothing);
}

/// Two bf16 elements side by side, as one word of memory: to widen or narrow
/// them takes no shuffle of vectors.
struct Bf16Pair {
  float even;
  float odd;

  static Bf16Pair Load(const uint16_t* from) {
    static_assert(std::endian::native == std::endian::little);
    uint32_t word;
    std::memcpy(&word, from, sizeof(word));
    return {std::bit_cast<float>(word << 16),
            std::bit_cast<float>(word & 0xffff0000U)};
  }
  /// Both, rounded.
  uint32_t Word() const {
    return (FloatToBf16High(odd) & 0xffff0000U) | FloatToBf16High(even) >> 16;
  }
  /// The same by `NumberToBf16High`.
  uint32_t NumberWord() const {
    return (NumberToBf16High(odd) & 0xffff0000U) | NumberToBf16High(even) >> 16;
  }
};

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_ROW_OPS_H_
