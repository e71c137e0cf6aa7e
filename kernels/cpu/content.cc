#include "kernels/cpu/content.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>

#include "kernels/arithmetic.h"
#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu/words.h"
#include "kernels/finite_check.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kLineBytes = 64;

// What lands in messages of this size stays in no cache until its event.
constexpr int64_t kStreamFromBytes = 512 << 10;

bool IsFiniteRow(const std::byte* from, int64_t row_bytes,
                 const FiniteCheck& check) {
  const int64_t whole_words = row_bytes / kWordBytes;
  uint64_t carries = 0;
  for (int64_t i = 0; i < whole_words; ++i) {
    carries |= check.Carries(LoadWord(from + i * kWordBytes));
  }
  if (const int64_t rest = row_bytes % kWordBytes; rest > 0) {
    carries |= check.Carries(LoadWord(from + whole_words * kWordBytes, rest));
  }
  return carries == 0;
}

int64_t FirstNonFiniteColumn(const std::byte* row, int64_t dim, DType dtype,
                             const FiniteCheck& check) {
  const int64_t size = SizeOf(dtype);
  int64_t column = 0;
  while (column < dim &&
         check.Carries(LoadWord(row + column * size, size)) == 0) {
    ++column;
  }
  return column;
}

void StoreLeast(std::atomic<int64_t>& least, int64_t value) {
  int64_t seen = least.load(std::memory_order_relaxed);
  while (value < seen &&
         !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void AddTo(uint64_t& sum, uint64_t value) {
  std::atomic_ref<uint64_t>(sum).fetch_add(value, std::memory_order_relaxed);
}

// Copies the next row to `to`, and returns where to read it: where it came
// from, if it lies there in one piece.
const std::byte* LandRow(PieceReader& source, std::byte* to, int64_t row_bytes,
                         bool stream) {
  const std::string_view row = source.Peek(row_bytes);
  if (row.empty()) {
    source.Copy(to, row_bytes);
    return to;
  }
  if (stream) {
    StreamLines(row.data(), to, row_bytes);
  } else {
    std::memcpy(to, row.data(), row.size());
  }
  source.Pass(row_bytes);
  return reinterpret_cast<const std::byte*>(row.data());
}

}  // namespace

void LandRows(Executor& executor, const HostPieces& from, void* to,
              int64_t row_count, int64_t dim, DType dtype,
              int64_t first_position, ContentSum& content, RowScan& scan) {
  constexpr int64_t kNoRow = std::numeric_limits<int64_t>::max();
  const int64_t row_bytes = dim * SizeOf(dtype);
  const Secrets secrets(row_bytes);
  const FiniteCheck check = FiniteCheck::Of(dtype);
  auto* target = static_cast<std::byte*>(to);
  const bool stream = CanStream(executor.isa()) &&
                      row_count * row_bytes >= kStreamFromBytes &&
                      row_bytes % kLineBytes == 0 &&
                      reinterpret_cast<uintptr_t>(to) % kLineBytes == 0;
  std::atomic<int64_t> bad_row = kNoRow;
  VectorFor(executor, row_count, WireGrain(row_count, row_bytes),
            [&](int64_t begin, int64_t end) {
              ContentSum sum;
              PieceReader source(from, begin * row_bytes);
              for (int64_t i = begin; i < end; ++i) {
                // Three loops over a row, but only the first finds it in
                // memory.
                const std::byte* const row =
                    LandRow(source, target + i * row_bytes, row_bytes, stream);
                sum += RowContent(first_position + i,
                                  WordsContent(row, row_bytes, secrets));
                if (!IsFiniteRow(row, row_bytes, check)) StoreLeast(bad_row, i);
              }
              AddTo(content.low, sum.low);
              AddTo(content.high, sum.high);
              if (stream) EndStream();
            });
  scan = RowScan();
  if (const int64_t row = bad_row.load(); row != kNoRow) {
    scan.non_finite_row = row;
    scan.non_finite_column =
        FirstNonFiniteColumn(target + row * row_bytes, dim, dtype, check);
  }
}

uint64_t Digest(Executor& executor, const RowTable& table,
                const Beta2History& history) {
  const int64_t row_bytes = table.row_bytes();
  const Secrets secrets(row_bytes);
  const auto* weights = static_cast<const std::byte*>(table.weights);
  uint64_t total = 0;
  VectorFor(executor, table.row_count, RowGrain(row_bytes),
            [&](int64_t begin, int64_t end) {
              uint64_t sum = 0;
              for (int64_t i = begin; i < end; ++i) {
                const float v = ReplaySecondMoment(
                    table.states[i].second_moment, history.beta2,
                    history.suffix_min, int64_t{table.states[i].last_event} + 1,
                    history.event_count);
                sum += RowDigest(
                    table.first_row_id + i,
                    WordsContent(weights + i * row_bytes, row_bytes, secrets),
                    std::bit_cast<uint32_t>(v));
              }
              AddTo(total, sum);
            });
  return total;
}

}  // namespace rowhouse::kernels::cpu
