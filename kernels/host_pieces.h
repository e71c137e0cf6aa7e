#ifndef ROWHOUSE_KERNELS_HOST_PIECES_H_
#define ROWHOUSE_KERNELS_HOST_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rowhouse::kernels {

/// Bytes of host memory that lie in pieces, one after another, as they come off
/// a wire. A view: what it was made of must stay.
class HostPieces {
 public:
  HostPieces() = default;
  /// One piece.
  HostPieces(std::string_view whole)  // NOLINT: as good as the text.
      : whole_(whole) {}
  HostPieces(const std::string& whole)  // NOLINT: likewise.
      : whole_(whole) {}
  explicit HostPieces(std::span<const std::string_view> pieces)
      : pieces_(pieces) {}

  std::span<const std::string_view> pieces() const {
    return pieces_.empty() ? std::span(&whole_, 1) : pieces_;
  }

  int64_t size_bytes() const {
    size_t size = 0;
    for (const std::string_view piece : pieces()) size += piece.size();
    return static_cast<int64_t>(size);
  }

 private:
  std::string_view whole_;  // Where `pieces_` is empty.
  std::span<const std::string_view> pieces_;
};

/// Copies pieces out, front to back. Thread-compatible.
class PieceReader {
 public:
  /// Begins `offset` bytes into `pieces`.
  ///
  /// REQUIRES: there are so many; here and below.
  explicit PieceReader(const HostPieces& pieces, int64_t offset = 0)
      : pieces_(pieces) {
    Skip(static_cast<size_t>(offset));
  }

  /// Copies the next `size_bytes`.
  void Copy(void* to, int64_t size_bytes) {
    auto* out = static_cast<std::byte*>(to);
    Each(size_bytes, [&](std::string_view piece) {
      std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
    });
  }

  /// The next `size_bytes`, if they lie in one piece; or nothing. Stays there.
  std::string_view Peek(int64_t size_bytes) const {
    const auto size = static_cast<size_t>(size_bytes);
    if (at_ == pieces_.pieces().size() || Piece().size() - used_ < size) {
      return {};
    }
    return Piece().substr(used_, size);
  }

  /// Passes the next `size_bytes`.
  void Pass(int64_t size_bytes) {
    Skip(used_ + static_cast<size_t>(size_bytes));
  }

  /// Calls `take` with each piece of the next `size_bytes`.
  template <typename TakePiece>
  void Each(int64_t size_bytes, TakePiece take) {
    auto left = static_cast<size_t>(size_bytes);
    while (left > 0) {
      const std::string_view piece = Piece().substr(used_, left);
      take(piece);
      left -= piece.size();
      Skip(used_ + piece.size());
    }
  }

  /// The next `size_bytes`, in pieces; passes them.
  std::vector<std::string_view> Take(int64_t size_bytes) {
    std::vector<std::string_view> taken;
    Each(size_bytes, [&](std::string_view piece) { taken.push_back(piece); });
    return taken;
  }

 private:
  std::string_view Piece() const { return pieces_.pieces()[at_]; }

  // Goes on at `used` bytes into the piece, past pieces that are used up, empty
  // ones too.
  void Skip(size_t used) {
    used_ = used;
    while (at_ < pieces_.pieces().size() && used_ >= Piece().size()) {
      used_ -= Piece().size();
      ++at_;
    }
  }

  HostPieces pieces_;
  size_t at_ = 0;  // The piece, and what of it is passed.
  size_t used_ = 0;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_HOST_PIECES_H_
