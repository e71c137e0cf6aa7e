#include "client/internal/link_rows.h"

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status CopyNow(kernels::Backend& backend, const void* from, void* to,
                     int64_t size_bytes) {
  ROWHOUSE_RETURN_IF_ERROR(backend.Copy(from, to, size_bytes));
  return backend.Synchronize();
}

}  // namespace

TransferEnd ReceiveRows(const ServerLink::Transfer& transfer,
                        const kernels::LinkPieces::Patience& patience,
                        const LinkedRows& rows, std::byte* landing,
                        RowSink sink) {
  TransferEnd end;
  if (landing != nullptr && transfer.Reaches(landing)) {
    end.link = transfer.pieces().ReceiveAt(landing, rows.row_count,
                                           rows.row_bytes, patience);
    return end;
  }
  const auto land = [&](int64_t first, int64_t count, const std::byte* from) {
    return CopyNow(transfer.backend(), from, landing + first * rows.row_bytes,
                   count * rows.row_bytes);
  };
  const auto hand_on = [&](int64_t first, int64_t count,
                           const std::byte* from) -> absl::Status {
    const int64_t size = count * rows.row_bytes;
    ROWHOUSE_ASSIGN_OR_RETURN(std::byte* const piece, transfer.HostPiece());
    ROWHOUSE_RETURN_IF_ERROR(CopyNow(transfer.backend(), from, piece, size));
    end.sunk = true;
    end.caller = sink(first, std::string_view(reinterpret_cast<char*>(piece),
                                              static_cast<size_t>(size)));
    return end.caller;
  };
  end.link = landing != nullptr
                 ? transfer.pieces().Receive(rows.row_count, rows.row_bytes,
                                             patience, land)
                 : transfer.pieces().Receive(rows.row_count, rows.row_bytes,
                                             patience, hand_on);
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
  if (selection.positions.empty()) {
    return SendTogether(transfer, patience,
                        call.rows + selection.first_position * call.row_bytes,
                        selection.size(), call.row_bytes);
  }
  return transfer.pieces().Send(
      selection.size(), call.row_bytes, patience,
      [&](int64_t first, int64_t count, std::byte* to) -> absl::Status {
        ROWHOUSE_ASSIGN_OR_RETURN(std::byte* const piece, transfer.HostPiece());
        selection.Gather(call.rows, call.row_bytes, first, count, piece);
        return CopyNow(transfer.backend(), piece, to, count * call.row_bytes);
      });
}

}  // namespace rowhouse::client::internal
