#ifndef ROWHOUSE_KERNELS_CUDA_SPARSE_H_
#define ROWHOUSE_KERNELS_CUDA_SPARSE_H_

/// The host's side of the operations on sparse rows; the contracts are those of
/// `Backend`. Each enqueues kernels on its stream and returns.

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/stream.h"

namespace rowhouse::kernels::cuda {

absl::Status InitializeRows(Stream& stream, const RowTable& table,
                            const Initializer& initializer, bool fresh);

absl::Status GatherRows(Stream& stream, const RowTable& table,
                        std::span<const int64_t> slots, void* out);

absl::Status GatherRowsTo(Stream& stream, const RowTable& table,
                          std::span<const int64_t> slots,
                          std::span<const int64_t> positions, void* out);

absl::Status PlaceRows(Stream& stream, const HostPieces& rows,
                       int64_t row_bytes, std::span<const int64_t> positions,
                       void* out);

absl::Status WriteRows(Stream& stream, const RowTable& table,
                       int64_t first_slot, int64_t row_count, const void* rows);

absl::Status ApplyRowAdamEvent(Stream& stream, const RowTable& table,
                               const RowAdamEvent& event, EventReport& report);

absl::Status BringCurrent(Stream& stream, const RowTable& table,
                          const Beta2History& history,
                          std::span<const int64_t> slots);

absl::Status MergedStatistics(Stream& stream,
                              std::span<const GradientPart> parts, int64_t dim,
                              DType gradient_dtype,
                              GradientStatistics& statistics);

absl::Status Digest(Stream& stream, const RowTable& table,
                    const Beta2History& history, uint64_t& sum);

absl::Status LandRows(Stream& stream, const HostPieces& from, void* to,
                      int64_t row_count, int64_t dim, DType dtype,
                      int64_t first_position, ContentSum& content,
                      RowScan& scan);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SPARSE_H_
