#ifndef ROWHOUSE_KERNELS_LINK_PIECES_H_
#define ROWHOUSE_KERNELS_LINK_PIECES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/peer_link.h"

namespace rowhouse::kernels {

/// Moves rows over a link in pieces, the same on both ends: of as many rows as
/// fit into `block_bytes`, but an eighth of that in the first piece, and in
/// each that follows twice as many as in the one before, until so many fit.
/// Rows that the link does not reach, or that are yet to be gathered, go
/// through blocks of the backend's memory: one is filled, or emptied, while
/// others travel.
///
/// Thread-compatible, as the link is.
class LinkPieces {
 public:
  static constexpr int64_t kBlockCount = 3;
  static constexpr int64_t kFirstShare = 8;

  /// How long an end waits for the other in one call.
  struct Patience {
    absl::Time deadline = absl::InfiniteFuture();
    /// Without any piece that comes through.
    absl::Duration stall = absl::Seconds(10);
  };

  /// `backend` and `link` must outlive it. Errors: the backend's, for want of
  /// memory.
  static absl::StatusOr<std::unique_ptr<LinkPieces>> Make(Backend& backend,
                                                          PeerLink& link,
                                                          int64_t block_bytes);

  int64_t block_bytes() const { return block_bytes_; }

  /// Puts rows [first, first + count) to `to`, memory of the backend; they are
  /// there when it returns.
  using Fill = absl::FunctionRef<absl::Status(int64_t first, int64_t count,
                                              std::byte* to)>;
  /// Takes them from there.
  using Take = absl::FunctionRef<absl::Status(int64_t first, int64_t count,
                                              const std::byte* from)>;

  /// Errors: the link's; or those of `fill` and `take`, which abort the link.
  /// Nothing is under way when these return.
  ///
  /// REQUIRES: `row_bytes <= block_bytes()`.
  absl::Status Send(int64_t row_count, int64_t row_bytes,
                    const Patience& patience, Fill fill);
  absl::Status Receive(int64_t row_count, int64_t row_bytes,
                       const Patience& patience, Take take);

  /// The same, from and to rows that the link reaches.
  absl::Status SendFrom(const std::byte* rows, int64_t row_count,
                        int64_t row_bytes, const Patience& patience);
  absl::Status ReceiveAt(std::byte* rows, int64_t row_count, int64_t row_bytes,
                         const Patience& patience);

 private:
  LinkPieces(PeerLink& link, int64_t block_bytes)
      : link_(link), block_bytes_(block_bytes) {}

  std::byte* Block(int64_t piece) const {
    return blocks_[static_cast<size_t>(piece % kBlockCount)].as<std::byte>();
  }
  absl::Status Await(int64_t count, const Patience& patience);
  void GiveUp();

  PeerLink& link_;
  const int64_t block_bytes_;
  std::array<Buffer, kBlockCount> blocks_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_LINK_PIECES_H_
