// The operations that merge parts.

#include <bit>
#include <utility>

#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/statistics.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int64_t kStateBytes = sizeof(float) + sizeof(int32_t);

int64_t EntryCount(std::span<const GradientPart> parts) {
  int64_t count = 0;
  for (const GradientPart& part : parts) count += part.row_count;
  return count;
}

// The one part that has rows, or null.
const GradientPart* OnlyPart(std::span<const GradientPart> parts) {
  const GradientPart* only = nullptr;
  for (const GradientPart& part : parts) {
    if (part.row_count == 0) continue;
    if (only != nullptr) return nullptr;
    only = &part;
  }
  return only;
}

bool AreVectorRows(std::span<const GradientPart> parts, int64_t dim) {
  for (const GradientPart& part : parts) {
    if (part.row_count > 0 && !IsVectorRow(part.rows, dim)) return false;
  }
  return true;
}

struct MergeScratch {
  EntryScratch entries;
  LongRuns long_runs;
  float* wide_rows;
};

absl::StatusOr<MergeScratch> CutMergeScratch(Stream& stream, int64_t count,
                                             int64_t dim, int64_t floats) {
  return stream.Scratch([&](ScratchCutter& cutter) {
    MergeScratch scratch;
    scratch.entries = EntryScratch::Cut(cutter, count);
    scratch.long_runs = LongRuns::Cut(cutter, count, dim);
    scratch.wide_rows = cutter.Take<float>(floats);
    return scratch;
  });
}

// Finds the runs of `entries` and sums the long ones.
cudaError_t LaunchRuns(std::span<const GradientPart> parts, int64_t dim,
                       DType dtype, const Entries& entries, LongRuns& long_runs,
                       RunCounts* counts, cudaStream_t stream) {
  long_runs.count = &counts->long_runs;
  cudaError_t error = LaunchFindRuns(entries, long_runs, counts, stream);
  if (error == cudaSuccess) {
    error = LaunchSumLongRuns(entries, long_runs, dtype, dim,
                              AreVectorRows(parts, dim), stream);
  }
  return error;
}

// One event on its way: by the short way, for parts whose slots are in order,
// or by a sort.
class Event {
 public:
  Event(Stream& stream, const RowTable& table, const RowAdamEvent& event,
        int64_t entry_count, const MergeScratch& scratch, RowAdamCounts* counts)
      : stream_(stream), parts_(event.parts), scratch_(scratch) {
    launch_.table = table;
    launch_.entries.count = entry_count;
    launch_.gradient_dtype = event.gradient_dtype;
    launch_.factors = event.factors;
    launch_.policy = event.policy;
    launch_.beta2 = event.history.beta2;
    launch_.suffix_min = event.history.suffix_min;
    launch_.event_count = event.history.event_count;
    launch_.vector_rows = IsVectorRow(table.weights, table.dim) &&
                          AreVectorRows(event.parts, table.dim);
    launch_.counts = counts;
    launch_.wide_rows = scratch.wide_rows;
  }

  const RowAdamLaunch& launch() const { return launch_; }

  // Enqueues the event where its slots are in order, each part by itself; it
  // waits for no answer: what is enqueued ends at once where they are not.
  // Says whether it was done.
  absl::StatusOr<bool> ApplyInOrder() {
    const GradientPart* const only = OnlyPart(parts_);
    if (only == nullptr && !MayMergeParts(parts_)) return false;
    int32_t* const unordered = &launch_.counts->runs.unordered;
    const cudaError_t checked =
        only != nullptr
            ? LaunchCheckIncreasing(only->slots, only->row_count, unordered,
                                    stream_.get())
            : LaunchMergeParts(parts_, RowStride(), scratch_.entries,
                               launch_.entries, unordered, stream_.get());
    if (checked != cudaSuccess) return ToStatus(checked, "checking an event");
    absl::StatusOr<int32_t> found = stream_.Peek(unordered, [&] {
      return only != nullptr ? LaunchSinglePart(*only) : LaunchOfEntries();
    });
    if (!found.ok()) return std::move(found).status();
    return *found == 0;
  }

  absl::Status ApplySorted() {
    RunCounts* const counts = &launch_.counts->runs;
    cudaError_t error =
        cudaMemsetAsync(counts, 0, sizeof(RunCounts), stream_.get());
    if (error == cudaSuccess) {
      error = LaunchSortEntries(
          parts_, RowStride(),
          std::bit_width(static_cast<uint64_t>(launch_.table.row_count - 1)),
          scratch_.entries, launch_.entries, stream_.get());
    }
    if (error == cudaSuccess) error = LaunchOfEntries();
    return ToStatus(error, "applying an event");
  }

 private:
  int64_t RowStride() const {
    return launch_.table.dim * SizeOf(launch_.gradient_dtype);
  }

  cudaError_t LaunchSinglePart(const GradientPart& part) {
    launch_.single_part = true;
    launch_.part_rows = part.rows;
    launch_.entries = {part.slots, nullptr, part.row_count};
    return LaunchRowAdam(launch_, stream_.get());
  }

  cudaError_t LaunchOfEntries() {
    launch_.single_part = false;
    const cudaError_t error = LaunchRuns(
        parts_, launch_.table.dim, launch_.gradient_dtype, launch_.entries,
        scratch_.long_runs, &launch_.counts->runs, stream_.get());
    launch_.long_runs = scratch_.long_runs;
    return error == cudaSuccess ? LaunchRowAdam(launch_, stream_.get()) : error;
  }

  Stream& stream_;
  const std::span<const GradientPart> parts_;
  MergeScratch scratch_;
  RowAdamLaunch launch_;
};

// What the CPU counts row by row, from counts of rows.
void AddTo(EventReport& report, const RowAdamLaunch& launch,
           const RowAdamCounts& counts) {
  // A single part in order was not searched for runs.
  const int64_t row_count = launch.single_part
                                ? launch.entries.count
                                : static_cast<int64_t>(counts.runs.runs);
  const auto no_mean_square = static_cast<int64_t>(counts.bad_mean_squares);
  const auto no_moment = static_cast<int64_t>(counts.bad_second_moments);
  const auto no_weights = static_cast<int64_t>(counts.bad_weights);
  const int64_t row_bytes = launch.table.row_bytes();
  const int64_t state_read = row_count - no_mean_square;
  const int64_t weights_read = state_read - no_moment;
  const int64_t written = weights_read - no_weights;
  report.entry_count += launch.entries.count;
  report.row_visits += row_count;
  report.untouched_row_count += row_count - written;
  report.bytes_moved +=
      launch.entries.count * launch.table.dim * SizeOf(launch.gradient_dtype) +
      state_read * kStateBytes + weights_read * row_bytes +
      written * (row_bytes + kStateBytes);
}

}  // namespace

absl::Status ApplyRowAdamEvent(Stream& stream, const RowTable& table,
                               const RowAdamEvent& event, EventReport& report) {
  const int64_t count = EntryCount(event.parts);
  if (count == 0) return absl::OkStatus();
  absl::StatusOr<MergeScratch> scratch = CutMergeScratch(
      stream, count, table.dim, RowAdamScratchFloats(table.dim));
  if (!scratch.ok()) return std::move(scratch).status();
  absl::StatusOr<RowAdamCounts*> counts = stream.NewResult<RowAdamCounts>();
  if (!counts.ok()) return std::move(counts).status();
  Event on_device(stream, table, event, count, *scratch, *counts);
  absl::StatusOr<bool> done = on_device.ApplyInOrder();
  if (!done.ok()) return std::move(done).status();
  if (!*done) {
    absl::Status applied = on_device.ApplySorted();
    if (!applied.ok()) return applied;
  }
  return stream.Deliver<RowAdamCounts>(
      *counts,
      [&report, launch = on_device.launch()](const RowAdamCounts& found) {
        AddTo(report, launch, found);
      });
}

absl::Status MergedStatistics(Stream& stream,
                              std::span<const GradientPart> parts, int64_t dim,
                              DType gradient_dtype,
                              GradientStatistics& statistics) {
  const int64_t count = EntryCount(parts);
  if (count == 0) return absl::OkStatus();
  struct Found {
    GradientStatistics statistics;
    RunCounts runs;
    unsigned long long slot_bits;
  };
  absl::StatusOr<MergeScratch> scratch =
      CutMergeScratch(stream, count, dim, /*floats=*/0);
  if (!scratch.ok()) return std::move(scratch).status();
  absl::StatusOr<Found*> found = stream.NewResult<Found>();
  if (!found.ok()) return std::move(found).status();
  for (const GradientPart& part : parts) {
    if (part.row_count == 0) continue;
    absl::Status combined =
        ToStatus(LaunchCombineBits(part.slots, part.row_count,
                                   &(*found)->slot_bits, stream.get()),
                 "reading slots");
    if (!combined.ok()) return combined;
  }
  absl::StatusOr<unsigned long long> slot_bits =
      stream.Peek(&(*found)->slot_bits, [] { return cudaSuccess; });
  if (!slot_bits.ok()) return std::move(slot_bits).status();
  Entries entries;
  cudaError_t error = LaunchSortEntries(
      parts, dim * SizeOf(gradient_dtype), std::bit_width(uint64_t{*slot_bits}),
      scratch->entries, entries, stream.get());
  if (error == cudaSuccess) {
    error = LaunchRuns(parts, dim, gradient_dtype, entries, scratch->long_runs,
                       &(*found)->runs, stream.get());
  }
  if (error == cudaSuccess) {
    error = LaunchMergedStatistics(entries, scratch->long_runs, gradient_dtype,
                                   dim, AreVectorRows(parts, dim),
                                   &(*found)->statistics, stream.get());
  }
  if (error != cudaSuccess) return ToStatus(error, "merging statistics");
  return stream.Deliver<Found>(*found, [&statistics](const Found& all) {
    statistics += all.statistics;
  });
}

}  // namespace rowhouse::kernels::cuda
