#include "server/checkpoint_writer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/shard_file_writer.h"
#include "server/checkpoint_format.h"
#include "server/shard/snapshot.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 20;

class ThreadWriter final : public CheckpointWriter {
 public:
  ThreadWriter(CheckpointDirectory& directory,
               std::shared_ptr<ServedTable> table, Request request,
               Callbacks callbacks)
      : directory_(directory),
        table_(std::move(table)),
        request_(std::move(request)),
        callbacks_(std::move(callbacks)),
        thread_([this] { Run(); }) {}

  ~ThreadWriter() override {
    Cancel();
    thread_.join();
  }

  void Cancel() override {
    call_->cancelled = true;
    table_->shard->NoteCancelled();
  }

  CheckpointProgress progress() const override {
    return {done_bytes_, total_bytes_, before_image_row_count_,
            absl::Nanoseconds(event_wait_nanoseconds_.load())};
  }

 private:
  using PieceOr = absl::StatusOr<std::unique_ptr<SnapshotPiece>>;

  void Run() { callbacks_.done(Write()); }

  absl::Status Write();
  absl::StatusOr<std::unique_ptr<Snapshot>> Open();
  absl::Status WriteRows(Snapshot& snapshot);
  absl::StatusOr<std::unique_ptr<ShardFileWriter>> CreateFile(
      const Snapshot& snapshot, const ShardManifest& manifest);
  absl::Status WritePieces(Snapshot& snapshot, ShardFileWriter& file);
  absl::Status WriteAhead(SnapshotPiece& piece, ShardFileWriter& file);
  absl::Status ReadBack(SnapshotPiece& piece, ShardFileWriter& file);
  absl::Status WriteBlock(SnapshotPiece& piece, ShardFileWriter& file);
  absl::StatusOr<ShardManifest> ManifestOf(const Snapshot& snapshot) const;
  void Note(const Snapshot& snapshot);

  const ShardSpec& spec() const { return table_->shard->spec(); }
  ShardName name() const {
    return {request_.checkpoint, short_name_, spec().shard_index,
            spec().placement.shard_count()};
  }

  CheckpointDirectory& directory_;
  const std::shared_ptr<ServedTable> table_;
  const std::string short_name_ = ShortName(table_->name);
  const Request request_;
  Callbacks callbacks_;
  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
  std::optional<BaseTable> base_;
  int64_t row_bytes_ = 0;
  std::atomic<int64_t> done_bytes_ = 0;
  std::atomic<int64_t> total_bytes_ = 0;
  std::atomic<int64_t> before_image_row_count_ = 0;
  std::atomic<int64_t> event_wait_nanoseconds_ = 0;
  std::thread thread_;  // Last: runs on the members above.
};

absl::Status ThreadWriter::Write() {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<Snapshot> snapshot, Open());
  callbacks_.armed();
  std::promise<absl::Status> cut;
  snapshot->Cut([&](absl::Status status) { cut.set_value(std::move(status)); });
  ROWHOUSE_RETURN_IF_ERROR(cut.get_future().get());
  absl::Status written = WriteRows(*snapshot);
  if (!written.ok()) directory_.RemoveShard(name()).IgnoreError();
  return written;
}

absl::StatusOr<std::unique_ptr<Snapshot>> ThreadWriter::Open() {
  // Before events are waited for.
  ROWHOUSE_RETURN_IF_ERROR(directory_.CheckNotWhole(request_.checkpoint));
  // Trainers hand in once all shards are armed; the first has done this then.
  if (spec().shard_index == 0) {
    ROWHOUSE_RETURN_IF_ERROR(
        directory_.ForgetTrainerStates(request_.checkpoint));
  }
  SnapshotRequest request;
  request.name = request_.checkpoint;
  request.event = request_.event;
  if (!request_.base.empty()) {
    ROWHOUSE_ASSIGN_OR_RETURN(const LoadedCheckpoint base,
                              directory_.Load(request_.base));
    const LoadedTable* const table = base.Find(short_name_);
    if (table == nullptr) {
      return TableNotSavedError(request_.base, short_name_);
    }
    base_ = BaseTable{request_.base, table->entry.event};
    request.base = {request_.base, table->entry.event};
  }
  row_bytes_ = RowBytesOf(RowColumnsOf(spec()));
  request.block_row_count = std::max<int64_t>(1, kBlockBytes / row_bytes_);
  request.buffer_bytes = request_.buffer_bytes;
  std::promise<absl::StatusOr<std::unique_ptr<Snapshot>>> opened;
  table_->shard->OpenSnapshot(
      std::move(request), call_,
      [&](absl::StatusOr<std::unique_ptr<Snapshot>> snapshot) {
        opened.set_value(std::move(snapshot));
      });
  return opened.get_future().get();
}

absl::Status ThreadWriter::WriteRows(Snapshot& snapshot) {
  const absl::Time start = absl::Now();
  ROWHOUSE_ASSIGN_OR_RETURN(ShardManifest manifest, ManifestOf(snapshot));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<ShardFileWriter> file,
                            CreateFile(snapshot, manifest));
  total_bytes_ = snapshot.row_count() * row_bytes_;
  ROWHOUSE_RETURN_IF_ERROR(WritePieces(snapshot, *file));
  manifest.file = file->shape();
  ROWHOUSE_ASSIGN_OR_RETURN(manifest.summary, file->Finish());
  const SnapshotStatistics statistics = snapshot.statistics();
  manifest.statistics = {manifest.summary.size_bytes,
                         absl::ToDoubleSeconds(absl::Now() - start),
                         statistics.before_image_row_count,
                         absl::ToDoubleSeconds(statistics.event_wait)};
  ROWHOUSE_RETURN_IF_ERROR(
      directory_.WriteShardManifest(request_.checkpoint, manifest));
  snapshot.NoteDurable();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardFileWriter>> ThreadWriter::CreateFile(
    const Snapshot& snapshot, const ShardManifest& manifest) {
  ShardFileWriter::Options options;
  options.row_count = snapshot.row_count();
  options.block_rows = std::max<int64_t>(1, kBlockBytes / row_bytes_);
  options.columns = FileColumnsOf(spec());
  const std::vector<float>& beta2 = snapshot.state().beta2;
  options.sides.push_back({{kBeta2History, "F32", {snapshot.state().event}},
                           std::as_bytes(std::span(beta2))});
  std::vector<int64_t> row_ids(snapshot.slots().begin(),
                               snapshot.slots().end());
  if (snapshot.base_event().has_value()) {
    for (int64_t& id : row_ids) id += manifest.first_row_id;
    options.sides.push_back({{std::string(kRowIds), "I64", {options.row_count}},
                             std::as_bytes(std::span(std::as_const(row_ids)))});
  }
  options.metadata = MetadataOf(manifest);
  return directory_.CreateShardFile(name(), options);
}

// While one piece is being written, the shard makes the next.
absl::Status ThreadWriter::WritePieces(Snapshot& snapshot,
                                       ShardFileWriter& file) {
  const auto start_next = [&] {
    auto next = std::make_shared<std::promise<PieceOr>>();
    snapshot.Next([next](PieceOr piece) { next->set_value(std::move(piece)); });
    return next->get_future();
  };
  std::future<PieceOr> next = start_next();
  while (true) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotPiece> piece,
                              next.get());
    if (piece == nullptr) return absl::OkStatus();
    next = start_next();
    const absl::Status written = piece->before_images()
                                     ? WriteAhead(*piece, file)
                                     : WriteBlock(*piece, file);
    Note(snapshot);
    if (!written.ok()) {
      next.wait();
      return written;
    }
  }
}

// Calls `run(first, count)` for each run of consecutive places among
// [begin, end) of `places`.
template <typename Run>
absl::Status ForRuns(std::span<const int64_t> places, size_t begin, size_t end,
                     const Run& run) {
  for (size_t first = begin; first < end;) {
    size_t next = first + 1;
    while (next < end && places[next] == places[next - 1] + 1) ++next;
    ROWHOUSE_RETURN_IF_ERROR(run(first, next - first));
    first = next;
  }
  return absl::OkStatus();
}

// The same of all places, on several threads where there are many: rows far
// apart cost a call of the system each.
template <typename Run>
absl::Status ForRuns(std::span<const int64_t> places, const Run& run) {
  constexpr size_t kLeastPerThread = 256;
  const size_t count = std::clamp<size_t>(
      places.size() / kLeastPerThread, 1,
      std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  std::vector<absl::Status> results(count);
  std::vector<std::thread> threads;
  const auto part = [&](size_t t) {
    results[t] = ForRuns(places, places.size() * t / count,
                         places.size() * (t + 1) / count, run);
  };
  for (size_t t = 1; t < count; ++t) threads.emplace_back(part, t);
  part(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    ROWHOUSE_RETURN_IF_ERROR(result);
  }
  return absl::OkStatus();
}

absl::Status ThreadWriter::WriteAhead(SnapshotPiece& piece,
                                      ShardFileWriter& file) {
  const std::span<const int64_t> places = piece.places();
  return ForRuns(places, [&](size_t first, size_t count) -> absl::Status {
    for (size_t c = 0; c < file.shape().columns.size(); ++c) {
      const auto size = static_cast<size_t>(file.shape().columns[c].row_bytes);
      ROWHOUSE_RETURN_IF_ERROR(file.WriteAhead(
          c, places[first], piece.rows(c).subspan(first * size, count * size)));
    }
    return absl::OkStatus();
  });
}

// Takes the rows that were written ahead in place of what the piece has.
absl::Status ThreadWriter::ReadBack(SnapshotPiece& piece,
                                    ShardFileWriter& file) {
  const std::span<const int64_t> places = piece.places();
  return ForRuns(places, [&](size_t first, size_t count) -> absl::Status {
    const auto at = static_cast<size_t>(places[first] - piece.first_place());
    for (size_t c = 0; c < file.shape().columns.size(); ++c) {
      const auto size = static_cast<size_t>(file.shape().columns[c].row_bytes);
      ROWHOUSE_RETURN_IF_ERROR(file.ReadBack(
          c, places[first], piece.rows(c).subspan(at * size, count * size)));
    }
    return absl::OkStatus();
  });
}

absl::Status ThreadWriter::WriteBlock(SnapshotPiece& piece,
                                      ShardFileWriter& file) {
  piece.TakeKeptRows();
  ROWHOUSE_RETURN_IF_ERROR(ReadBack(piece, file));
  const int64_t block = piece.first_place() / file.shape().block_rows;
  for (size_t c = 0; c < file.shape().columns.size(); ++c) {
    ROWHOUSE_RETURN_IF_ERROR(file.WriteBlock(c, block, piece.rows(c)));
  }
  done_bytes_ += piece.row_count() * row_bytes_;
  return absl::OkStatus();
}

void ThreadWriter::Note(const Snapshot& snapshot) {
  const SnapshotStatistics statistics = snapshot.statistics();
  before_image_row_count_ = statistics.before_image_row_count;
  event_wait_nanoseconds_ = absl::ToInt64Nanoseconds(statistics.event_wait);
}

absl::StatusOr<ShardManifest> ThreadWriter::ManifestOf(
    const Snapshot& snapshot) const {
  ShardManifest manifest;
  manifest.table = short_name_;
  manifest.shard_index = spec().shard_index;
  manifest.shard_count = spec().placement.shard_count();
  manifest.first_row_id = spec().placement.first_row(spec().shard_index);
  manifest.row_count =
      spec().placement.end_row(spec().shard_index) - manifest.first_row_id;
  manifest.event = snapshot.state().event;
  ROWHOUSE_ASSIGN_OR_RETURN(manifest.spec, SpecToJson(table_->spec));
  for (const TrainerCountChange& change : snapshot.state().trainer_counts) {
    manifest.trainer_counts.push_back(
        {change.from_event, change.trainer_count});
  }
  if (snapshot.base_event().has_value()) manifest.base = base_;
  return manifest;
}

}  // namespace

std::unique_ptr<CheckpointWriter> CheckpointWriter::Start(
    CheckpointDirectory& directory, std::shared_ptr<ServedTable> table,
    Request request, Callbacks callbacks) {
  return std::make_unique<ThreadWriter>(
      directory, std::move(table), std::move(request), std::move(callbacks));
}

}  // namespace rowhouse::server
