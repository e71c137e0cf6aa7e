#include "kernels/link_pieces.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace rowhouse::kernels {
namespace {

absl::Time Limit(const LinkPieces::Patience& patience) {
  return std::min(patience.deadline, absl::Now() + patience.stall);
}

// How rows are cut: the first piece is small, for the other end waits for it.
class Cut {
 public:
  Cut(int64_t row_count, int64_t row_bytes, int64_t block_bytes)
      : row_bytes_(row_bytes) {
    const int64_t most = block_bytes / row_bytes;
    int64_t next = std::max(most / LinkPieces::kFirstShare, int64_t{1});
    while (firsts_.back() < row_count) {
      firsts_.push_back(std::min(firsts_.back() + next, row_count));
      next = std::min(2 * next, most);
    }
  }

  int64_t piece_count() const { return std::ssize(firsts_) - 1; }
  int64_t first(int64_t piece) const {
    return firsts_[static_cast<size_t>(piece)];
  }
  int64_t count(int64_t piece) const { return first(piece + 1) - first(piece); }
  int64_t offset(int64_t piece) const { return first(piece) * row_bytes_; }
  int64_t bytes(int64_t piece) const { return count(piece) * row_bytes_; }

 private:
  const int64_t row_bytes_;
  std::vector<int64_t> firsts_ = {0};  // And the end of the last.
};

}  // namespace

absl::StatusOr<std::unique_ptr<LinkPieces>> LinkPieces::Make(
    Backend& backend, PeerLink& link, int64_t block_bytes) {
  std::unique_ptr<LinkPieces> pieces(new LinkPieces(link, block_bytes));
  for (Buffer& block : pieces->blocks_) {
    absl::StatusOr<Buffer> made = backend.AllocateUninitialized(block_bytes);
    if (!made.ok()) return std::move(made).status();
    block = *std::move(made);
  }
  return pieces;
}

absl::Status LinkPieces::Await(int64_t count, const Patience& patience) {
  return link_.Await(count, Limit(patience));
}

// Nothing is under way after it, so memory may go.
void LinkPieces::GiveUp() {
  link_.Abort();
  link_.Await(link_.posted(), absl::InfiniteFuture()).IgnoreError();
}

absl::Status LinkPieces::Send(int64_t row_count, int64_t row_bytes,
                              const Patience& patience, Fill fill) {
  const Cut cut(row_count, row_bytes, block_bytes_);
  const int64_t before = link_.posted();
  for (int64_t piece = 0; piece < cut.piece_count(); ++piece) {
    absl::Status sent = Await(before + piece - kBlockCount + 1, patience);
    if (sent.ok()) {
      sent = fill(cut.first(piece), cut.count(piece), Block(piece));
      if (!sent.ok()) GiveUp();
    }
    if (sent.ok()) {
      sent = link_.Send(Block(piece), cut.bytes(piece), Limit(patience));
    }
    if (!sent.ok()) return sent;
  }
  return Await(link_.posted(), patience);
}

absl::Status LinkPieces::Receive(int64_t row_count, int64_t row_bytes,
                                 const Patience& patience, Take take) {
  const Cut cut(row_count, row_bytes, block_bytes_);
  const int64_t before = link_.posted();
  const auto post = [&](int64_t piece) {
    return piece < cut.piece_count()
               ? link_.Receive(Block(piece), cut.bytes(piece), Limit(patience))
               : absl::OkStatus();
  };
  absl::Status received = absl::OkStatus();
  for (int64_t piece = 0; received.ok() && piece < kBlockCount - 1; ++piece) {
    received = post(piece);
  }
  for (int64_t piece = 0; received.ok() && piece < cut.piece_count(); ++piece) {
    received = post(piece + kBlockCount - 1);
    if (received.ok()) received = Await(before + piece + 1, patience);
    if (received.ok()) {
      received = take(cut.first(piece), cut.count(piece), Block(piece));
      if (!received.ok()) GiveUp();
    }
  }
  return received;
}

absl::Status LinkPieces::SendFrom(const std::byte* rows, int64_t row_count,
                                  int64_t row_bytes, const Patience& patience) {
  const Cut cut(row_count, row_bytes, block_bytes_);
  for (int64_t piece = 0; piece < cut.piece_count(); ++piece) {
    absl::Status sent =
        link_.Send(rows + cut.offset(piece), cut.bytes(piece), Limit(patience));
    if (!sent.ok()) return sent;
  }
  return Await(link_.posted(), patience);
}

absl::Status LinkPieces::ReceiveAt(std::byte* rows, int64_t row_count,
                                   int64_t row_bytes,
                                   const Patience& patience) {
  const Cut cut(row_count, row_bytes, block_bytes_);
  for (int64_t piece = 0; piece < cut.piece_count(); ++piece) {
    absl::Status received = link_.Receive(rows + cut.offset(piece),
                                          cut.bytes(piece), Limit(patience));
    if (!received.ok()) return received;
  }
  return Await(link_.posted(), patience);
}

}  // namespace rowhouse::kernels
