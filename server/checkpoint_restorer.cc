#include "server/checkpoint_restorer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/buffer.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/row_source.h"
#include "server/checkpoint_format.h"
#include "server/shard/restoration.h"
#include "server/shard/snapshot.h"

namespace rowhouse::server {
namespace {

// Rows that are read and written at a time, unless a block of the files ends
// before.
constexpr int64_t kPieceBytes = int64_t{8} << 20;

absl::Status TableDiffers(const std::string& table, const char* field,
                          const std::string& found, const std::string& wanted) {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kTableDiffers,
                     absl::StrCat(field, " of ", table, " is ", found,
                                  "; in the checkpoint it is ", wanted),
                     {{"field", field}});
}

std::string Describe(const std::vector<ColumnSpec>& columns) {
  std::string text;
  for (const ColumnSpec& column : columns) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", column.name, " ",
                    column.dtype, " x ", std::max<int64_t>(column.width, 1));
  }
  return text;
}

class ThreadRestorer final : public CheckpointRestorer {
 public:
  ThreadRestorer(CheckpointDirectory& directory, kernels::Backend& backend,
                 std::shared_ptr<ServedTable> table, std::string checkpoint,
                 absl::AnyInvocable<void(absl::Status)> done)
      : directory_(directory),
        backend_(backend),
        table_(std::move(table)),
        checkpoint_(std::move(checkpoint)),
        done_(std::move(done)),
        thread_([this] { done_(Restore()); }) {}

  ~ThreadRestorer() override {
    Cancel();
    thread_.join();
  }

  void Cancel() override { call_->cancelled = true; }

  CheckpointProgress progress() const override {
    return {done_bytes_, total_bytes_, 0, absl::ZeroDuration()};
  }

 private:
  // Rows between file and shard.
  struct Piece {
    kernels::Buffer memory;
    std::vector<std::span<std::byte>> columns;
    std::future<absl::Status> written;  // Valid while they are being written.
  };

  absl::Status Restore();
  absl::Status CheckTable(const LoadedTable& saved) const;
  absl::StatusOr<ShardState> ReadState(RowSource& source) const;
  absl::StatusOr<std::unique_ptr<Restoration>> Open(ShardState state);
  absl::Status CopyRows(RowSource& source, Restoration& restoration);
  absl::Status FillPiece(RowSource& source, int64_t first_row_id,
                         int64_t row_count, Piece& piece);

  const ShardSpec& spec() const { return table_->shard->spec(); }

  CheckpointDirectory& directory_;
  kernels::Backend& backend_;
  const std::shared_ptr<ServedTable> table_;
  const std::string checkpoint_;
  absl::AnyInvocable<void(absl::Status)> done_;
  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
  std::atomic<int64_t> done_bytes_ = 0;
  std::atomic<int64_t> total_bytes_ = 0;
  std::thread thread_;  // Last: runs on the members above.
};

absl::Status ThreadRestorer::Restore() {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<LoadedCheckpoint> chain,
                            directory_.LoadChain(checkpoint_));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<RowSource> source,
      RowSource::Open(directory_, chain, ShortName(table_->name)));
  ROWHOUSE_RETURN_IF_ERROR(CheckTable(source->table()));
  ROWHOUSE_ASSIGN_OR_RETURN(ShardState state, ReadState(*source));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<Restoration> restoration,
                            Open(std::move(state)));
  ROWHOUSE_RETURN_IF_ERROR(CopyRows(*source, *restoration));
  std::promise<absl::Status> finished;
  restoration->Finish(
      [&](absl::Status status) { finished.set_value(std::move(status)); });
  return finished.get_future().get();
}

absl::Status ThreadRestorer::CheckTable(const LoadedTable& saved) const {
  const int64_t row_count = spec().placement.row_count();
  if (row_count != saved.row_count()) {
    return TableDiffers(table_->name, "row_count", absl::StrCat(row_count),
                        absl::StrCat(saved.row_count()));
  }
  const std::vector<ColumnSpec> columns = FileColumnsOf(spec());
  if (columns != saved.columns()) {
    return TableDiffers(table_->name, "what a row has", Describe(columns),
                        Describe(saved.columns()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardState> ThreadRestorer::ReadState(RowSource& source) const {
  ShardState state;
  state.event = source.table().entry.event;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::byte> beta2,
                            source.ReadSide(0, kBeta2History));
  state.beta2.resize(beta2.size() / sizeof(float));
  if (!beta2.empty()) {
    std::memcpy(state.beta2.data(), beta2.data(),
                state.beta2.size() * sizeof(float));
  }
  for (const TrainerCountEntry& count :
       source.table().shards.front().trainer_counts) {
    state.trainer_counts.push_back({count.from_event, count.trainer_count});
  }
  return state;
}

absl::StatusOr<std::unique_ptr<Restoration>> ThreadRestorer::Open(
    ShardState state) {
  std::promise<absl::StatusOr<std::unique_ptr<Restoration>>> opened;
  table_->shard->OpenRestoration(
      checkpoint_, std::move(state), call_,
      [&](absl::StatusOr<std::unique_ptr<Restoration>> restoration) {
        opened.set_value(std::move(restoration));
      });
  return opened.get_future().get();
}

// While one piece is being written, the next is read.
absl::Status ThreadRestorer::CopyRows(RowSource& source,
                                      Restoration& restoration) {
  const int64_t first = spec().placement.first_row(spec().shard_index);
  const int64_t end = spec().placement.end_row(spec().shard_index);
  const int64_t row_bytes = RowBytesOf(RowColumnsOf(spec()));
  const int64_t most = std::max<int64_t>(1, kPieceBytes / row_bytes);
  total_bytes_ = (end - first) * row_bytes;
  std::array<Piece, 2> pieces;
  absl::Status status;
  for (int64_t row = first, turn = 0; row < end && status.ok(); ++turn) {
    Piece& piece = pieces[static_cast<size_t>(turn % 2)];
    if (piece.written.valid()) status = piece.written.get();
    if (call_->cancelled) status = absl::CancelledError("the caller has gone");
    const int64_t count =
        std::min({end, row + most, source.PieceEnd(row)}) - row;
    if (status.ok()) status = FillPiece(source, row, count, piece);
    if (!status.ok()) break;
    auto written = std::make_shared<std::promise<absl::Status>>();
    piece.written = written->get_future();
    restoration.Write(row - first, count,
                      {piece.columns.begin(), piece.columns.end()},
                      [written](absl::Status result) {
                        written->set_value(std::move(result));
                      });
    row += count;
    done_bytes_ += count * row_bytes;
  }
  // The shard reads the pieces until it has answered.
  for (Piece& piece : pieces) {
    if (!piece.written.valid()) continue;
    absl::Status written = piece.written.get();
    if (status.ok()) status = std::move(written);
  }
  return status;
}

absl::Status ThreadRestorer::FillPiece(RowSource& source, int64_t first_row_id,
                                       int64_t row_count, Piece& piece) {
  const std::vector<ColumnSpec>& columns = source.table().columns();
  int64_t bytes = 0;
  for (const ColumnSpec& column : columns) {
    bytes += row_count * column.row_bytes;
  }
  if (bytes > piece.memory.size_bytes()) {
    piece.memory = {};
    ROWHOUSE_ASSIGN_OR_RETURN(piece.memory, backend_.AllocateHost(bytes));
  }
  piece.columns.clear();
  auto* at = piece.memory.as<std::byte>();
  for (const ColumnSpec& column : columns) {
    const auto size = static_cast<size_t>(row_count * column.row_bytes);
    piece.columns.emplace_back(at, size);
    at += size;
  }
  return source.Read(first_row_id, row_count, piece.columns);
}

}  // namespace

std::unique_ptr<CheckpointRestorer> CheckpointRestorer::Start(
    CheckpointDirectory& directory, kernels::Backend& backend,
    std::shared_ptr<ServedTable> table, std::string checkpoint,
    absl::AnyInvocable<void(absl::Status)> done) {
  return std::make_unique<ThreadRestorer>(directory, backend, std::move(table),
                                          std::move(checkpoint),
                                          std::move(done));
}

}  // namespace rowhouse::server
