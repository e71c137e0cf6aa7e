#include "kernels/cpu/rows.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/stream.h"
#include "kernels/hash.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kByteGrain = 1 << 20;
constexpr int64_t kLineBytes = 64;

// Gathers of so much and more bypass the caches, which would not keep them.
constexpr int64_t kStreamFromBytes = 8 << 20;

template <typename Weight>
void FillUniform(Executor& executor, const RowTable& table, uint64_t seed,
                 float bound) {
  VectorFor(executor, table.row_count, RowGrain(table.row_bytes()),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                Weight* row =
                    static_cast<Weight*>(table.weights) + i * table.dim;
                for (int64_t j = 0; j < table.dim; ++j) {
                  row[j] = Narrow<Weight>(
                      UniformInitial(seed, bound, table.first_row_id + i, j));
                }
              }
            });
}

}  // namespace

void CopyBytes(Executor& executor, const void* from, void* to,
               int64_t size_bytes) {
  executor.ParallelFor(size_bytes, kByteGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin,
                static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void ClearBytes(Executor& executor, void* data, int64_t size_bytes) {
  executor.ParallelFor(size_bytes, kByteGrain, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<std::byte*>(data) + begin, 0,
                static_cast<size_t>(end - begin));
  });
}

void InitializeRows(Executor& executor, const RowTable& table,
                    const Initializer& initializer, bool fresh) {
  if (!fresh) {
    ClearBytes(executor, table.states,
               table.row_count * int64_t{sizeof(RowState)});
  }
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      if (!fresh) {
        ClearBytes(executor, table.weights,
                   table.row_count * table.row_bytes());
      }
      return;
    case Initializer::Kind::kUniform:
      WithElement(table.dtype, [&]<typename Weight>() {
        FillUniform<Weight>(executor, table, initializer.seed,
                            initializer.bound);
      });
      return;
  }
}

void GatherRows(Executor& executor, const RowTable& table,
                std::span<const int64_t> slots, void* out) {
  const auto count = static_cast<int64_t>(slots.size());
  const int64_t row_bytes = table.row_bytes();
  const auto* weights = static_cast<const std::byte*>(table.weights);
  const bool stream = CanStream(executor.isa()) &&
                      count * row_bytes >= kStreamFromBytes &&
                      row_bytes % kLineBytes == 0 &&
                      reinterpret_cast<uintptr_t>(out) % kLineBytes == 0;
  executor.ParallelFor(
      count, WireGrain(count, row_bytes), [&](int64_t begin, int64_t end) {
        auto* to = static_cast<std::byte*>(out) + begin * row_bytes;
        for (int64_t i = begin; i < end; ++i, to += row_bytes) {
          if (i + kRowsAhead < count) {
            const int64_t ahead = slots[static_cast<size_t>(i + kRowsAhead)];
            PrefetchRow(weights + ahead * row_bytes, row_bytes);
          }
          const std::byte* row =
              weights + slots[static_cast<size_t>(i)] * row_bytes;
          if (stream) {
            StreamLines(row, to, row_bytes);
          } else {
            std::memcpy(to, row, static_cast<size_t>(row_bytes));
          }
        }
        if (stream) EndStream();
      });
}

void GatherRowsTo(Executor& executor, const RowTable& table,
                  std::span<const int64_t> slots,
                  std::span<const int64_t> positions, void* out) {
  const auto count = static_cast<int64_t>(slots.size());
  const int64_t row_bytes = table.row_bytes();
  const auto* weights = static_cast<const std::byte*>(table.weights);
  auto* to = static_cast<std::byte*>(out);
  executor.ParallelFor(
      count, WireGrain(count, row_bytes), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (i + kRowsAhead < count) {
            const int64_t ahead = slots[static_cast<size_t>(i + kRowsAhead)];
            PrefetchRow(weights + ahead * row_bytes, row_bytes);
          }
          const auto at = static_cast<size_t>(i);
          std::memcpy(to + positions[at] * row_bytes,
                      weights + slots[at] * row_bytes,
                      static_cast<size_t>(row_bytes));
        }
      });
}

void PlaceRows(const HostPieces& rows, int64_t row_bytes,
               std::span<const int64_t> positions, void* out) {
  auto* to = static_cast<std::byte*>(out);
  PieceReader reader(rows);
  if (positions.empty()) return reader.Copy(to, rows.size_bytes());
  for (const int64_t position : positions) {
    reader.Copy(to + position * row_bytes, row_bytes);
  }
}

void WriteRows(Executor& executor, const RowTable& table, int64_t first_slot,
               int64_t row_count, const void* rows) {
  CopyBytes(
      executor, rows,
      static_cast<std::byte*>(table.weights) + first_slot * table.row_bytes(),
      row_count * table.row_bytes());
}

}  // namespace rowhouse::kernels::cpu
