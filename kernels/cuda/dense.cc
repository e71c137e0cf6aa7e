#include "kernels/cuda/dense.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "kernels/cuda/adamw.h"
#include "kernels/cuda/dense_digest.h"
#include "kernels/cuda/dense_rows.h"
#include "kernels/cuda/dense_statistics.h"
#include "kernels/cuda/embedding_gradient.h"
#include "kernels/cuda/entries.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

absl::Status Clear(Stream& stream, void* data, int64_t size_bytes) {
  if (data == nullptr || size_bytes == 0) return absl::OkStatus();
  return ToStatus(
      cudaMemsetAsync(data, 0, static_cast<size_t>(size_bytes), stream.get()),
      "clearing a dense table");
}

// Weights (or master and weights), moments and bias of one row.
int64_t RowBytes(const DenseTable& table) {
  const int64_t element = SizeOf(table.dtype) + 2 * kFloatBytes +
                          (table.master == nullptr ? 0 : kFloatBytes);
  return table.dim * element + (table.bias == nullptr ? 0 : 4 * kFloatBytes);
}

}  // namespace

absl::Status InitializeDense(Stream& stream, const DenseTable& table,
                             const Initializer& initializer, bool fresh) {
  const int64_t elements = table.row_count * table.dim;
  absl::Status status;
  const auto clear = [&](void* data, int64_t count, int64_t element_bytes) {
    status.Update(Clear(stream, data, count * element_bytes));
  };
  if (!fresh) {
    clear(table.first_moment, elements, kFloatBytes);
    clear(table.second_moment, elements, kFloatBytes);
    clear(table.bias, table.row_count, kFloatBytes);
    clear(table.bias_first_moment, table.row_count, kFloatBytes);
    clear(table.bias_second_moment, table.row_count, kFloatBytes);
    status.Update(ClearMainGrad(stream, table));
  }
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      if (fresh) break;
      clear(table.weights, elements, SizeOf(table.dtype));
      clear(table.master, elements, kFloatBytes);
      break;
    case Initializer::Kind::kUniform:
      status.Update(ToStatus(LaunchFillUniform(table, initializer.seed,
                                               initializer.bound, stream.get()),
                             "initializing a dense table"));
      break;
  }
  return status;
}

absl::Status WriteDenseRows(Stream& stream, const DenseTable& table,
                            int64_t first_slot, int64_t row_count,
                            const void* rows) {
  const int64_t elements = row_count * table.dim;
  if (elements == 0) return absl::OkStatus();
  const int64_t first = first_slot * table.dim;
  void* const to =
      static_cast<std::byte*>(table.weights) + first * SizeOf(table.dtype);
  absl::Status copied = ToStatus(
      cudaMemcpyAsync(to, rows,
                      static_cast<size_t>(elements * SizeOf(table.dtype)),
                      cudaMemcpyDefault, stream.get()),
      "writing dense rows");
  if (!copied.ok() || table.master == nullptr) return copied;
  // From the weights: `rows` may be the host's.
  return ToStatus(LaunchWiden(to, table.dtype, elements, table.master + first,
                              stream.get()),
                  "writing a dense master");
}

absl::Status ClearMainGrad(Stream& stream, const DenseTable& table) {
  absl::Status status =
      Clear(stream, table.main_grad,
            table.row_count * table.dim * SizeOf(table.main_grad_dtype));
  status.Update(Clear(stream, table.bias_grad, table.row_count * kFloatBytes));
  return status;
}

absl::Status AccumulateEmbeddingGradient(Stream& stream,
                                         const MainGrad& main_grad,
                                         const EmbeddingGradient& gradient) {
  const auto count = static_cast<int64_t>(gradient.slots.size());
  if (count == 0) return absl::OkStatus();
  const auto scratch = stream.Scratch(
      [&](ScratchCutter& cutter) { return EntryScratch::Cut(cutter, count); });
  if (!scratch.ok()) return scratch.status();
  const GradientPart part = {gradient.slots.data(), gradient.rows, count};
  Entries entries;
  absl::Status sorted = ToStatus(
      LaunchSortEntries(
          {&part, 1}, gradient.row_stride * SizeOf(gradient.dtype),
          std::bit_width(static_cast<uint64_t>(main_grad.row_count - 1)),
          *scratch, entries, stream.get()),
      "sorting an embedding gradient");
  if (!sorted.ok()) return sorted;
  return ToStatus(LaunchAccumulateEmbeddingGradient(main_grad, gradient,
                                                    entries, stream.get()),
                  "adding an embedding gradient");
}

absl::Status ApplyAdamW(Stream& stream, const DenseTable& table,
                        const AdamWFactors& factors, NonFinitePolicy policy,
                        EventReport& report) {
  const auto untouched = stream.NewResult<unsigned long long>();
  if (!untouched.ok()) return untouched.status();
  absl::Status applied =
      ToStatus(LaunchAdamW(table, factors, policy, *untouched, stream.get()),
               "applying AdamW");
  if (!applied.ok()) return applied;
  const int64_t rows = table.row_count;
  const int64_t main_bytes = table.dim * SizeOf(table.main_grad_dtype);
  return stream.Deliver<unsigned long long>(
      *untouched, [&report, rows, main_bytes,
                   row_bytes = RowBytes(table)](unsigned long long count) {
        const auto left = static_cast<int64_t>(count);
        report.row_visits += rows;
        report.untouched_row_count += left;
        report.bytes_moved +=
            rows * (row_bytes + 2 * main_bytes) + (rows - left) * row_bytes;
      });
}

absl::Status DenseStatistics(Stream& stream, const DenseTable& table,
                             GradientStatistics& statistics) {
  const auto result = stream.NewResult<GradientStatistics>();
  if (!result.ok()) return result.status();
  absl::Status launched =
      ToStatus(LaunchDenseStatistics(table, *result, stream.get()),
               "taking statistics of a dense gradient");
  if (!launched.ok()) return launched;
  return stream.Deliver<GradientStatistics>(
      *result,
      [&statistics](const GradientStatistics& found) { statistics += found; });
}

absl::Status DenseDigest(Stream& stream, const DenseTable& table,
                         uint64_t& sum) {
  sum = 0;
  const auto result = stream.NewResult<uint64_t>();
  if (!result.ok()) return result.status();
  absl::Status launched = ToStatus(
      LaunchDenseDigest(table, *result, stream.get()), "digesting a table");
  if (!launched.ok()) return launched;
  return stream.Deliver<uint64_t>(*result,
                                  [&sum](uint64_t found) { sum = found; });
}

}  // namespace rowhouse::kernels::cuda
