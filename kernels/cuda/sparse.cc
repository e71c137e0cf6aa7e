#include "kernels/cuda/sparse.h"

#include <utility>

#include "kernels/cuda/content.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/rows.h"

namespace rowhouse::kernels::cuda {
namespace {

absl::Status ClearAsync(Stream& stream, void* data, int64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  return ToStatus(
      cudaMemsetAsync(data, 0, static_cast<size_t>(size_bytes), stream.get()),
      "clearing");
}

// `slots` in device memory: themselves, or a copy of host memory in `scratch`.
absl::StatusOr<const int64_t*> OnDevice(Stream& stream,
                                        std::span<const int64_t> slots,
                                        int64_t* scratch) {
  if (scratch == nullptr) return slots.data();
  absl::Status copied = stream.Upload(slots.data(), scratch,
                                      static_cast<int64_t>(slots.size_bytes()));
  if (!copied.ok()) return copied;
  return scratch;
}

}  // namespace

absl::Status InitializeRows(Stream& stream, const RowTable& table,
                            const Initializer& initializer, bool fresh) {
  if (!fresh) {
    absl::Status cleared = ClearAsync(
        stream, table.states, table.row_count * int64_t{sizeof(RowState)});
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

absl::Status GatherRowsTo(Stream& stream, const RowTable& table,
                          std::span<const int64_t> slots,
                          std::span<const int64_t> positions, void* out) {
  const auto count = static_cast<int64_t>(slots.size());
  if (count == 0) return absl::OkStatus();
  const bool copy_slots = !IsDeviceMemory(slots.data());
  const bool copy_positions = !IsDeviceMemory(positions.data());
  const auto scratch = stream.Scratch([&](ScratchCutter& cutter) {
    int64_t* const slots_copy =
        copy_slots ? cutter.Take<int64_t>(count) : nullptr;
    return std::pair(slots_copy,
                     copy_positions ? cutter.Take<int64_t>(count) : nullptr);
  });
  if (!scratch.ok()) return scratch.status();
  const auto device_slots = OnDevice(stream, slots, scratch->first);
  if (!device_slots.ok()) return device_slots.status();
  const auto device_positions = OnDevice(stream, positions, scratch->second);
  if (!device_positions.ok()) return device_positions.status();
  return ToStatus(LaunchGatherRows(table, *device_slots, count, out,
                                   stream.get(), *device_positions),
                  "gathering rows");
}

absl::Status PlaceRows(Stream& stream, const HostPieces& rows,
                       int64_t row_bytes, std::span<const int64_t> positions,
                       void* out) {
  const int64_t size_bytes = rows.size_bytes();
  if (positions.empty()) return stream.Upload(rows, out, size_bytes);
  const auto count = static_cast<int64_t>(positions.size());
  const bool copy_positions = !IsDeviceMemory(positions.data());
  const auto scratch = stream.Scratch([&](ScratchCutter& cutter) {
    char* const together = cutter.Take<char>(size_bytes);
    return std::pair(together,
                     copy_positions ? cutter.Take<int64_t>(count) : nullptr);
  });
  if (!scratch.ok()) return scratch.status();
  absl::Status uploaded = stream.Upload(rows, scratch->first, size_bytes);
  if (!uploaded.ok()) return uploaded;
  const auto device_positions = OnDevice(stream, positions, scratch->second);
  if (!device_positions.ok()) return device_positions.status();
  RowTable together;
  together.weights = scratch->first;
  together.row_count = count;
  together.dim = row_bytes / SizeOf(together.dtype);
  return ToStatus(LaunchGatherRows(together, /*slots=*/nullptr, count, out,
                                   stream.get(), *device_positions),
                  "placing rows");
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

absl::Status BringCurrent(Stream& stream, const RowTable& table,
                          const Beta2History& history,
                          std::span<const int64_t> slots) {
  const auto count = static_cast<int64_t>(slots.size());
  if (count == 0) return absl::OkStatus();
  const bool copy = !IsDeviceMemory(slots.data());
  absl::StatusOr<int64_t*> scratch = stream.Scratch([&](ScratchCutter& cutter) {
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

absl::Status Digest(Stream& stream, const RowTable& table,
                    const Beta2History& history, uint64_t& sum) {
  sum = 0;
  if (table.row_count == 0) return absl::OkStatus();
  absl::StatusOr<uint64_t*> result = stream.NewResult<uint64_t>();
  if (!result.ok()) return std::move(result).status();
  absl::Status launched =
      ToStatus(LaunchDigest(table, history.beta2, history.suffix_min,
                            history.event_count, *result, stream.get()),
               "digesting a table");
  if (!launched.ok()) return launched;
  return stream.Deliver<uint64_t>(*result,
                                  [&sum](uint64_t found) { sum = found; });
}

absl::Status LandRows(Stream& stream, const HostPieces& from, void* to,
                      int64_t row_count, int64_t dim, DType dtype,
                      int64_t first_position, ContentSum& content,
                      RowScan& scan) {
  scan = RowScan();
  if (row_count == 0) return absl::OkStatus();
  const int64_t size_bytes = row_count * dim * SizeOf(dtype);
  absl::Status landed =
      from.pieces().size() == 1 && IsDeviceMemory(from.pieces()[0].data())
          ? ToStatus(cudaMemcpyAsync(to, from.pieces()[0].data(),
                                     static_cast<size_t>(size_bytes),
                                     cudaMemcpyDeviceToDevice, stream.get()),
                     "landing rows")
          : stream.Upload(from, to, size_bytes);
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
