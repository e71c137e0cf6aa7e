#include "kernels/cuda/ngram.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/cuda/entries.h"
#include "kernels/cuda/ngram_embed.h"
#include "kernels/cuda/ngram_row_ids.h"
#include "kernels/cuda/ngram_sum.h"
#include "kernels/cuda/ngram_want.h"

namespace rowhouse::kernels::cuda {
namespace {

struct SumScratch {
  EntryScratch entries;
  SignedRow* rows;
  uint8_t* in_use;
};

// The steps as parts for the sort, row gradients being numbered through: one
// "byte" apart.
std::vector<GradientPart> PartsOf(std::span<const NgramStep> steps) {
  std::vector<GradientPart> parts;
  parts.reserve(steps.size());
  uintptr_t first = 0;
  for (const NgramStep& step : steps) {
    const auto count = static_cast<int64_t>(step.slots.size());
    parts.push_back(
        {step.slots.data(), reinterpret_cast<const void*>(first), count});
    first += static_cast<uintptr_t>(count);
  }
  return parts;
}

int64_t EntryCount(std::span<const NgramStep> steps) {
  int64_t count = 0;
  for (const NgramStep& step : steps) {
    count += static_cast<int64_t>(step.slots.size());
  }
  return count;
}

}  // namespace

absl::Status NgramRowIds(Stream& stream, std::span<const int32_t> tokens,
                         int64_t table_row_count, std::span<int64_t> row_ids) {
  return ToStatus(
      LaunchNgramRowIds(tokens, table_row_count, row_ids, stream.get()),
      "hashing n-grams");
}

absl::Status NgramWantList(Stream& stream,
                           std::span<const std::span<const int32_t>> steps,
                           int64_t table_row_count, std::span<int64_t> want,
                           int64_t& want_count) {
  const auto bits = stream.Scratch([&](ScratchCutter& cutter) {
    return RowBits::Cut(cutter, table_row_count);
  });
  if (!bits.ok()) return bits.status();
  absl::StatusOr<int64_t*> result = stream.NewHostResult<int64_t>(
      [&want_count](int64_t count) { want_count = count; });
  if (!result.ok()) return std::move(result).status();
  cudaError_t error = cudaMemsetAsync(
      bits->words, 0, static_cast<size_t>(bits->size_bytes()), stream.get());
  for (const std::span<const int32_t> tokens : steps) {
    if (error != cudaSuccess) break;
    error = LaunchMarkNgramRows(tokens, table_row_count, *bits, stream.get());
  }
  if (error == cudaSuccess) {
    error = LaunchListRows(*bits, want, *result, stream.get());
  }
  return ToStatus(error, "listing the rows of n-grams");
}

absl::Status FindSlots(Stream& stream, std::span<const int64_t> want,
                       std::span<const int64_t> row_ids,
                       std::span<int64_t> slots, int64_t& first_missing) {
  using Inverse = unsigned long long;  // NOLINT(runtime/int): as atomicMax has.
  absl::StatusOr<Inverse*> result = stream.NewResult<Inverse>();
  if (!result.ok()) return std::move(result).status();
  absl::Status launched =
      ToStatus(LaunchFindSlots(want, row_ids, slots, *result, stream.get()),
               "finding slots");
  if (!launched.ok()) return launched;
  return stream.Deliver<Inverse>(*result, [&first_missing](Inverse found) {
    first_missing = found == 0 ? -1 : static_cast<int64_t>(~found);
  });
}

absl::Status NgramEmbedForward(Stream& stream, const void* cache, DType dtype,
                               int64_t dim, std::span<const int32_t> tokens,
                               std::span<const int64_t> slots,
                               const SignPool& pool, void* out) {
  return ToStatus(LaunchNgramEmbedForward(cache, dtype, dim, tokens, slots,
                                          pool, out, stream.get()),
                  "embedding n-grams");
}

absl::Status NgramEmbedBackward(Stream& stream, const void* gradient,
                                DType dtype, int64_t dim,
                                std::span<const int32_t> tokens,
                                const SignPool& pool, void* row_gradient) {
  return ToStatus(LaunchNgramEmbedBackward(gradient, dtype, dim, tokens, pool,
                                           row_gradient, stream.get()),
                  "forming n-gram gradients");
}

absl::Status SumNgramGradients(Stream& stream, std::span<const NgramStep> steps,
                               DType gradient_dtype, int64_t dim,
                               const SignPool& pool, int64_t slot_count,
                               DType wire_dtype, void* out) {
  if (slot_count == 0) return absl::OkStatus();
  const int64_t count = EntryCount(steps);
  const auto scratch = stream.Scratch([&](ScratchCutter& cutter) {
    return SumScratch{EntryScratch::Cut(cutter, count),
                      cutter.Take<SignedRow>(count),
                      cutter.Take<uint8_t>(slot_count)};
  });
  if (!scratch.ok()) return scratch.status();
  absl::Status status =
      ToStatus(cudaMemsetAsync(scratch->in_use, 0,
                               static_cast<size_t>(slot_count), stream.get()),
               "clearing a list of slots");
  status.Update(ToStatus(
      LaunchListSignedRows(steps, gradient_dtype, dim, pool.row_count,
                           scratch->rows, scratch->in_use, stream.get()),
      "listing n-gram gradients"));
  Entries entries;
  if (status.ok() && count > 0) {
    const int slot_bits = std::bit_width(static_cast<uint64_t>(slot_count - 1));
    status =
        ToStatus(LaunchSortEntries(PartsOf(steps), 1, slot_bits,
                                   scratch->entries, entries, stream.get()),
                 "sorting n-gram gradients");
  }
  if (!status.ok()) return status;
  return ToStatus(
      LaunchSumNgramGradients(steps, gradient_dtype, dim, pool, scratch->rows,
                              scratch->in_use, entries, slot_count, wire_dtype,
                              out, stream.get()),
      "summing n-gram gradients");
}

}  // namespace rowhouse::kernels::cuda
