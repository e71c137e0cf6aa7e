#ifndef ROWHOUSE_TESTS_SERVER_SHARD_SNAPSHOT_FIXTURE_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_SNAPSHOT_FIXTURE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/restoration.h"
#include "server/shard/snapshot.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {

/// What a snapshot has handed out, put together as a writer of files does.
class SnapshotCopy {
 public:
  SnapshotCopy(const server::ShardSpec& spec, int64_t row_count)
      : columns_(server::RowColumnsOf(spec)),
        written_(static_cast<size_t>(row_count), false) {
    for (const server::RowColumn& column : columns_) {
      bytes_.emplace_back(static_cast<size_t>(row_count * column.row_bytes));
    }
  }

  void Take(server::SnapshotPiece& piece) {
    piece.TakeKeptRows();
    const std::span<const int64_t> places = piece.places();
    if (piece.before_images()) {
      EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
      for (size_t i = 0; i < places.size(); ++i) {
        Write(piece, static_cast<int64_t>(i), places[i]);
      }
      return;
    }
    for (int64_t i = 0; i < piece.row_count(); ++i) {
      const int64_t place = piece.first_place() + i;
      const bool ahead =
          std::binary_search(places.begin(), places.end(), place);
      EXPECT_EQ(written_[static_cast<size_t>(place)], ahead) << place;
      if (!ahead) Write(piece, i, place);
    }
  }

  bool complete() const {
    return std::all_of(written_.begin(), written_.end(),
                       [](bool written) { return written; });
  }

  std::span<std::byte> column(size_t c) { return bytes_[c]; }
  std::span<std::byte> row(size_t c, int64_t place) {
    const auto size = static_cast<size_t>(columns_[c].row_bytes);
    return std::span(bytes_[c]).subspan(static_cast<size_t>(place) * size,
                                        size);
  }
  std::vector<std::span<const std::byte>> rows(int64_t first,
                                               int64_t count) const {
    std::vector<std::span<const std::byte>> spans;
    for (size_t c = 0; c < bytes_.size(); ++c) {
      const auto size = static_cast<size_t>(columns_[c].row_bytes);
      spans.push_back(std::span<const std::byte>(bytes_[c]).subspan(
          static_cast<size_t>(first) * size,
          static_cast<size_t>(count) * size));
    }
    return spans;
  }

 private:
  void Write(server::SnapshotPiece& piece, int64_t from, int64_t place) {
    EXPECT_FALSE(written_[static_cast<size_t>(place)])
        << "row " << place << " came twice";
    written_[static_cast<size_t>(place)] = true;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto size = static_cast<size_t>(columns_[c].row_bytes);
      const auto source =
          piece.rows(c).subspan(static_cast<size_t>(from) * size, size);
      std::copy(source.begin(), source.end(), row(c, place).begin());
    }
  }

  std::vector<server::RowColumn> columns_;
  std::vector<bool> written_;
  std::vector<std::vector<std::byte>> bytes_;
};

using OpenedSnapshotOr = absl::StatusOr<std::unique_ptr<server::Snapshot>>;
using PieceOr = absl::StatusOr<std::unique_ptr<server::SnapshotPiece>>;

inline OpenedSnapshotOr OpenSnapshot(
    server::Shard& shard, server::SnapshotRequest request,
    std::shared_ptr<server::Call> call = BlockingShard::NewCall()) {
  PendingCall<std::unique_ptr<server::Snapshot>> opened;
  shard.OpenSnapshot(std::move(request), std::move(call), opened.Callback());
  return opened.Wait();
}

inline Pending<absl::Status> StartCut(server::Snapshot& snapshot) {
  Pending<absl::Status> cut;
  snapshot.Cut(cut.Callback());
  return cut;
}

inline PendingCall<std::unique_ptr<server::SnapshotPiece>> StartNext(
    server::Snapshot& snapshot) {
  PendingCall<std::unique_ptr<server::SnapshotPiece>> next;
  snapshot.Next(next.Callback());
  return next;
}

inline PieceOr Next(server::Snapshot& snapshot) {
  return StartNext(snapshot).Wait();
}

/// Takes what is left of a snapshot that has been cut.
inline void TakeRest(server::Snapshot& snapshot, SnapshotCopy& copy) {
  while (true) {
    PieceOr piece = Next(snapshot);
    ASSERT_THAT(piece, IsOk());
    if (*piece == nullptr) return;
    copy.Take(**piece);
  }
}

inline absl::StatusOr<std::unique_ptr<server::Restoration>> OpenRestoration(
    server::Shard& shard, server::ShardState state,
    std::string name = "restored") {
  PendingCall<std::unique_ptr<server::Restoration>> opened;
  shard.OpenRestoration(std::move(name), std::move(state),
                        BlockingShard::NewCall(), opened.Callback());
  return opened.Wait();
}

inline absl::Status Write(server::Restoration& restoration, int64_t first_slot,
                          int64_t row_count, const SnapshotCopy& copy) {
  Pending<absl::Status> written;
  restoration.Write(first_slot, row_count, copy.rows(first_slot, row_count),
                    written.Callback());
  return written.Wait();
}

inline absl::Status Finish(server::Restoration& restoration) {
  Pending<absl::Status> finished;
  restoration.Finish(finished.Callback());
  return finished.Wait();
}

/// Overwrites the whole of a shard with `copy`, a few rows at a time.
inline void Restore(server::Shard& shard, const server::ShardState& state,
                    const SnapshotCopy& copy, int64_t rows_per_write = 3,
                    std::string name = "restored") {
  auto restoration = OpenRestoration(shard, state, std::move(name));
  ASSERT_THAT(restoration, IsOk());
  const int64_t row_count = shard.spec().placement.end_row(0);
  for (int64_t first = 0; first < row_count; first += rows_per_write) {
    ASSERT_THAT(Write(**restoration, first,
                      std::min(rows_per_write, row_count - first), copy),
                IsOk());
  }
  ASSERT_THAT(Finish(**restoration), IsOk());
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_SNAPSHOT_FIXTURE_H_
