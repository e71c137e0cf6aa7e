#include "kernels/cuda/sparse.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/content.h"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/runs.h"
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

// Sorts the entries of `parts`, finds their runs and sums the long ones.
cudaError_t LaunchMerge(std::span<const GradientPart> parts, int64_t dim,
                        DType dtype, int slot_bits, MergeScratch& scratch,
                        RunCounts* counts, Entries& entries,
                        cudaStream_t stream) {
  cudaError_t error = LaunchSortEntries(parts, dim * SizeOf(dtype), slot_bits,
                                        scratch.entries, entries, stream);
  scratch.long_runs.count = &counts->long_runs;
  if (error == cudaSuccess) {
    error = LaunchFindRuns(entries, scratch.long_runs, counts, stream);
  }
  if (error == cudaSuccess) {
    error = LaunchSumLongRuns(entries, scratch.long_runs, dtype, dim,
                              AreVectorRows(parts, dim), stream);
  }
  return error;
}

// What the CPU counts row by row, from counts of rows.
void AddTo(EventReport& report, const RowAdamLaunch& launch,
           const RowAdamCounts& counts, int64_t row_count) {
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

absl::Status ClearAsync(Stream& stream, void* data, int64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  return ToStatus(cudaMemsetAsync(data, 0, static_cast<size_t>(size_bytes),
                                  stream.get()),
                  "clearing");
}

// `slots` in device memory: themselves, or a copy of host memory in `scratch`.
absl::StatusOr<const int64_t*> OnDevice(Stream& stream,
                                        std::span<const int64_t> slots,
                                        int64_t* scratch) {
  if (scratch == nullptr) return slots.data();
  absl::Status copied =
      stream.Upload(slots.data(), scratch,
                    static_cast<int64_t>(slots.size_bytes()));
  if (!copied.ok()) return copied;
  return scratch;
}

}  // namespace

absl::Status InitializeRows(Stream& stream, const RowTable& table,
                            const Initializer& initializer, bool fresh) {
  if (!fresh) {
    const int64_t state_bytes = table.row_count * int64_t{sizeof(float)};
    absl::Status cleared =
        ClearAsync(stream, table.second_moment, state_bytes);
    if (cleared.ok()) {
      cleared = ClearAsync(stream, table.last_event, state_bytes);
    }
    if (cleared.ok() && initializer.kind == Initializer::Kind::kZeros) {
      cleared = ClearAsync(stream, table.weights,
                           table.row_count * table.row_bytes());
    }
    if (!cleared.ok()) return cleared;
  }
  if (initializer.kind == Initializer::Kind::kZeros) return absl::OkStatus();
  return ToStatus(LaunchFillUniform(table, initializer.seed, initializer.bound,
                                    stream.get()),
                  "filling a table");
}

absl::Status GatherRows(Stream& stream, const RowTable& table,
                        std::span<const int64_t> slots, void* out) {
  const auto count = static_cast<int64_t>(slots.size());
  if (count == 0) return absl::OkStatus();
  const int64_t out_bytes = count * table.row_bytes();
  const bool copy_slots = !IsDeviceMemory(slots.data());
  const bool copy_out = !IsDeviceMemory(out);
  absl::StatusOr<std::pair<int64_t*, char*>> scratch =
      stream.Scratch([&](ScratchCutter& cutter) {
        int64_t* const slots_copy =
            copy_slots ? cutter.Take<int64_t>(count) : nullptr;
        return std::pair(slots_copy,
                         copy_out ? cutter.Take<char>(out_bytes) : nullptr);
      });
  if (!scratch.ok()) return std::move(scratch).status();
  absl::StatusOr<const int64_t*> device_slots =
      OnDevice(stream, slots, scratch->first);
  if (!device_slots.ok()) return std::move(device_slots).status();
  void* const to = copy_out ? scratch->second : out;
  cudaError_t error =
      LaunchGatherRows(table, *device_slots, count, to, stream.get());
  if (error == cudaSuccess && copy_out) {
    error = cudaMemcpyAsync(out, to, static_cast<size_t>(out_bytes),
                            cudaMemcpyDeviceToHost, stream.get());
  }
  return ToStatus(error, "gathering rows");
}

absl::Status WriteRows(Stream& stream, const RowTable& table,
                       int64_t first_slot, int64_t row_count,
                       const void* rows) {
  if (row_count == 0) return absl::OkStatus();
  return ToStatus(
      cudaMemcpyAsync(
          static_cast<char*>(table.weights) + first_slot * table.row_bytes(),
          rows, static_cast<size_t>(row_count * table.row_bytes()),
          cudaMemcpyDefault, stream.get()),
      "writing rows");
}

absl::Status ApplyRowAdamEvent(Stream& stream, const RowTable& table,
                               const RowAdamEvent& event, EventReport& report) {
  const int64_t count = EntryCount(event.parts);
  if (count == 0) return absl::OkStatus();
  RowAdamLaunch launch;
  launch.table = table;
  launch.gradient_dtype = event.gradient_dtype;
  launch.factors = event.factors;
  launch.policy = event.policy;
  launch.beta2 = event.history.beta2;
  launch.suffix_min = event.history.suffix_min;
  launch.event_count = event.history.event_count;
  launch.vector_rows = IsVectorRow(table.weights, table.dim) &&
                       AreVectorRows(event.parts, table.dim);
  absl::StatusOr<MergeScratch> scratch = CutMergeScratch(
      stream, count, table.dim, RowAdamScratchFloats(table.dim));
  if (!scratch.ok()) return std::move(scratch).status();
  absl::StatusOr<RowAdamCounts*> counts = stream.NewResult<RowAdamCounts>();
  if (!counts.ok()) return std::move(counts).status();
  launch.counts = *counts;
  launch.wide_rows = scratch->wide_rows;

  bool sort = true;
  if (const GradientPart* only = OnlyPart(event.parts); only != nullptr) {
    // The event of a part in order needs no sort, and waits for no answer: it
    // begins, and ends at once where the order is not what was hoped for.
    launch.entries = {only->slots, nullptr, count};
    launch.part_rows = only->rows;
    launch.single_part = true;
    absl::Status checked = ToStatus(
        LaunchCheckIncreasing(only->slots, count, &(*counts)->unordered,
                              stream.get()),
        "checking an event");
    if (!checked.ok()) return checked;
    absl::StatusOr<int32_t> unordered = stream.Peek(
        &(*counts)->unordered,
        [&] { return LaunchRowAdam(launch, stream.get()); });
    if (!unordered.ok()) return std::move(unordered).status();
    sort = *unordered != 0;
  }
  if (sort) {
    launch.single_part = false;
    const int slot_bits =
        std::bit_width(static_cast<uint64_t>(table.row_count - 1));
    cudaError_t error = LaunchMerge(event.parts, table.dim,
                                    event.gradient_dtype, slot_bits, *scratch,
                                    &(*counts)->runs, launch.entries,
                                    stream.get());
    launch.long_runs = scratch->long_runs;
    if (error == cudaSuccess) error = LaunchRowAdam(launch, stream.get());
    if (error != cudaSuccess) return ToStatus(error, "applying an event");
  }
  return stream.Deliver<RowAdamCounts>(
      *counts, [&report, launch, sort](const RowAdamCounts& found) {
        AddTo(report, launch, found,
              sort ? static_cast<int64_t>(found.runs.runs)
                   : launch.entries.count);
      });
}

absl::Status BringCurrent(Stream& stream, const RowTable& table,
                          const Beta2History& history,
                          std::span<const int64_t> slots) {
  const auto count = static_cast<int64_t>(slots.size());
  if (count == 0) return absl::OkStatus();
  const bool copy = !IsDeviceMemory(slots.data());
  absl::StatusOr<int64_t*> scratch =
      stream.Scratch([&](ScratchCutter& cutter) {
        return copy ? cutter.Take<int64_t>(count) : nullptr;
      });
  if (!scratch.ok()) return std::move(scratch).status();
  absl::StatusOr<const int64_t*> on_device = OnDevice(stream, slots, *scratch);
  if (!on_device.ok()) return std::move(on_device).status();
  return ToStatus(
      LaunchBringCurrent(table, history.beta2, history.suffix_min,
                         history.event_count, *on_device, count, stream.get()),
      "bringing rows current");
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
    absl::Status combined = ToStatus(
        LaunchCombineBits(part.slots, part.row_count, &(*found)->slot_bits,
                          stream.get()),
        "reading slots");
    if (!combined.ok()) return combined;
  }
  absl::StatusOr<unsigned long long> slot_bits =
      stream.Peek(&(*found)->slot_bits, [] { return cudaSuccess; });
  if (!slot_bits.ok()) return std::move(slot_bits).status();
  Entries entries;
  cudaError_t error =
      LaunchMerge(parts, dim, gradient_dtype,
                  std::bit_width(uint64_t{*slot_bits}), *scratch,
                  &(*found)->runs, entries, stream.get());
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

absl::Status Digest(Stream& stream, const RowTable& table,
                    const Beta2History& history, uint64_t& sum) {
  sum = 0;
  if (table.row_count == 0) return absl::OkStatus();
  absl::StatusOr<uint64_t*> result = stream.NewResult<uint64_t>();
  if (!result.ok()) return std::move(result).status();
  absl::Status launched = ToStatus(
      LaunchDigest(table, history.beta2, history.suffix_min,
                   history.event_count, *result, stream.get()),
      "digesting a table");
  if (!launched.ok()) return launched;
  return stream.Deliver<uint64_t>(*result,
                                  [&sum](uint64_t found) { sum = found; });
}

absl::Status LandRows(Stream& stream, const void* from, void* to,
                      int64_t row_count, int64_t dim, DType dtype,
                      int64_t first_position, ContentSum& content,
                      RowScan& scan) {
  scan = RowScan();
  if (row_count == 0) return absl::OkStatus();
  absl::Status landed =
      stream.Upload(from, to, row_count * dim * SizeOf(dtype));
  if (!landed.ok()) return landed;
  absl::StatusOr<RunContent*> result = stream.NewResult<RunContent>();
  if (!result.ok()) return std::move(result).status();
  landed = ToStatus(LaunchContent(to, row_count, dim, dtype, first_position,
                                  *result, stream.get()),
                    "landing rows");
  if (!landed.ok()) return landed;
  return stream.Deliver<RunContent>(
      *result, [&content, &scan, dim](const RunContent& found) {
        content += found.content;
        if (found.inverse_of_first_bad == 0) return;
        const auto bad = static_cast<int64_t>(~found.inverse_of_first_bad);
        scan.non_finite_row = bad / dim;
        scan.non_finite_column = bad % dim;
      });
}

}  // namespace rowhouse::kernels::cuda
