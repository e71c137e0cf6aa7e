#include "client/internal/link_rows.h"

#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/part_rows.h"
#include "kernels/row_table.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status CopyNow(kernels::Backend& backend, const void* from, void* to,
                     int64_t size_bytes) {
  ROWHOUSE_RETURN_IF_ERROR(backend.Copy(from, to, size_bytes));
  return backend.Synchronize();
}

// `buffer[positions[i], :] = rows[i, :]`.
absl::Status ScatterNow(kernels::Backend& backend, const std::byte* rows,
                        int64_t row_bytes, std::span<const int64_t> positions,
                        std::byte* buffer) {
  std::vector<int64_t> all(positions.size());
  std::iota(all.begin(), all.end(), 0);
  ROWHOUSE_RETURN_IF_ERROR(
      backend.GatherRowsTo(RowsAt(rows, row_bytes), all, positions, buffer));
  return backend.Synchronize();
}

}  // namespace

TransferEnd ReceiveRows(const ServerLink::Transfer& transfer,
                        const kernels::LinkPieces::Patience& patience,
                        const LinkedRows& rows, const PullCall& call,
                        RowSink sink) {
  TransferEnd end;
  kernels::LinkPieces& pieces = transfer.pieces();
  kernels::Backend& backend = transfer.backend();
  const int64_t row_bytes = rows.row_bytes;
  const bool counted = !call.handle.has_value();
  const bool on_device = transfer.IsOn(call.device);
  if (counted && call.landing != nullptr &&
      (on_device || call.device == nullptr)) {
    end.landed = true;
    end.link =
        transfer.Reaches(call.landing)
            ? pieces.ReceiveAt(call.landing, rows.row_count, row_bytes,
                               patience)
            : pieces.Receive(
                  rows.row_count, row_bytes, patience,
                  [&](int64_t first, int64_t count, const std::byte* from) {
                    return CopyNow(backend, from,
                                   call.landing + first * row_bytes,
                                   count * row_bytes);
                  });
    return end;
  }
  if (counted && on_device && call.buffer != nullptr) {
    end.landed = true;
    end.link = pieces.Receive(
        rows.row_count, row_bytes, patience,
        [&](int64_t first, int64_t count, const std::byte* from) {
          return ScatterNow(backend, from, row_bytes,
                            call.positions.subspan(static_cast<size_t>(first),
                                                   static_cast<size_t>(count)),
                            call.buffer);
        });
    return end;
  }
  end.link = pieces.Receive(
      rows.row_count, row_bytes, patience,
      [&](int64_t first, int64_t count, const std::byte* from) -> absl::Status {
        const int64_t size = count * row_bytes;
        ROWHOUSE_ASSIGN_OR_RETURN(std::byte* const piece, transfer.HostPiece());
        ROWHOUSE_RETURN_IF_ERROR(CopyNow(backend, from, piece, size));
        end.sunk = true;
        end.caller =
            sink(first, std::string_view(reinterpret_cast<char*>(piece),
                                         static_cast<size_t>(size)));
        return end.caller;
      });
  return end;
}

absl::Status SendTogether(const ServerLink::Transfer& transfer,
                          const kernels::LinkPieces::Patience& patience,
                          const std::byte* rows, int64_t row_count,
                          int64_t row_bytes) {
  if (transfer.Reaches(rows)) {
    return transfer.pieces().SendFrom(rows, row_count, row_bytes, patience);
  }
  return transfer.pieces().Send(
      row_count, row_bytes, patience,
      [&](int64_t first, int64_t count, std::byte* to) {
        return CopyNow(transfer.backend(), rows + first * row_bytes, to,
                       count * row_bytes);
      });
}

absl::Status SendRows(const ServerLink::Transfer& transfer,
                      const kernels::LinkPieces::Patience& patience,
                      const PushCall& call) {
  const RowSelection& selection = *call.selection;
  const bool on_device = transfer.IsOn(call.device);
  if (selection.positions.empty() && (on_device || call.device == nullptr)) {
    return SendTogether(transfer, patience,
                        call.rows + selection.first_position * call.row_bytes,
                        selection.size(), call.row_bytes);
  }
  return transfer.pieces().Send(
      selection.size(), call.row_bytes, patience,
      [&](int64_t first, int64_t count, std::byte* to) -> absl::Status {
        if (on_device) {
          ROWHOUSE_RETURN_IF_ERROR(transfer.backend().GatherRows(
              BufferOf(call),
              call.positions.subspan(static_cast<size_t>(first),
                                     static_cast<size_t>(count)),
              to));
          return transfer.backend().Synchronize();
        }
        ROWHOUSE_ASSIGN_OR_RETURN(std::byte* const piece, transfer.HostPiece());
        ROWHOUSE_RETURN_IF_ERROR(GatherPart(call, first, count, piece));
        if (call.device != nullptr) {
          ROWHOUSE_RETURN_IF_ERROR(call.device->Synchronize());
        }
        return CopyNow(transfer.backend(), piece, to, count * call.row_bytes);
      });
}

}  // namespace rowhouse::client::internal
