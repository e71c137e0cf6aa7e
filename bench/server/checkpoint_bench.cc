// A shard's file of a checkpoint, written and read in turns with the same bytes
// bare, on the disk of ROWHOUSE_BENCH_DIRECTORY (the temporary directory's): as
// many MiB as ROWHOUSE_BENCH_FILE_MIB says (512). `of_ceiling` is the bare time
// over ours.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/support/check.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/row_buffer.h"
#include "server/checkpoint/row_source.h"

namespace rowhouse::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kBlockRows = 4096;  // 6.3 MB.
constexpr char kCheckpoint[] = "bench";
constexpr char kTable[] = "rows";

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t FileMib() {
  const char* text = std::getenv("ROWHOUSE_BENCH_FILE_MIB");
  int64_t mib = 512;
  if (text != nullptr && (!absl::SimpleAtoi(text, &mib) || mib < 1)) {
    Check(absl::InvalidArgumentError("ROWHOUSE_BENCH_FILE_MIB is no size"));
  }
  return Size(mib, 8);
}

void Require(bool holds, const std::string& path) {
  if (!holds) Check(absl::InternalError(absl::StrCat(path, " failed")));
}

// A table of a sparse shard, in a directory of its own.
class DiskWork {
 public:
  DiskWork()
      : root_(MakeDirectory()),
        directory_(server::SystemFiles(), root_),
        columns_({{"weights", "BF16", 768, 1536}, {"row_state", "I32", 2, 8}}),
        row_count_(FileMib() * kMib / server::RowBytesOf(columns_)),
        block_(columns_, kBlockRows) {
    std::mt19937_64 random(1);
    for (const std::span<std::byte> column : block_.First(kBlockRows)) {
      for (std::byte& byte : column) byte = static_cast<std::byte>(random());
    }
  }
  ~DiskWork() { fs::remove_all(root_); }
  DiskWork(const DiskWork&) = delete;
  DiskWork& operator=(const DiskWork&) = delete;

  double bytes() const {
    return static_cast<double>(row_count_ * server::RowBytesOf(columns_));
  }
  double rows() const { return static_cast<double>(row_count_); }

  void Write() {
    server::ShardManifest manifest;
    manifest.table = kTable;
    manifest.row_count = row_count_;
    const auto writer = Check(directory_.CreateShardFile(
        {kCheckpoint, kTable, 0, 1},
        {row_count_, kBlockRows, columns_, {}, MetadataOf(manifest)}));
    const int64_t blocks = server::BlockCount(writer->shape());
    for (int64_t block = 0; block < blocks; ++block) {
      const auto rows =
          block_.First(server::BlockRowCount(writer->shape(), block));
      for (size_t i = 0; i < rows.size(); ++i) {
        Check(writer->WriteBlock(i, block, rows[i]));
      }
    }
    manifest.file = writer->shape();
    manifest.summary = Check(writer->Finish());
    Check(directory_.WriteShardManifest(kCheckpoint, manifest));
  }

  void Read(const std::vector<server::LoadedCheckpoint>& chain) {
    const auto source =
        Check(server::RowSource::Open(directory_, chain, kTable));
    for (int64_t row = 0; row < row_count_;) {
      const int64_t count = source->PieceEnd(row) - row;
      Check(source->Read(row, count, block_.First(count)));
      row += count;
    }
  }

  std::vector<server::LoadedCheckpoint> Publish() {
    server::Publication publication;
    publication.checkpoint = kCheckpoint;
    publication.tables = {{kTable, 0}};
    Check(directory_.Publish(publication));
    return Check(directory_.LoadChain(kCheckpoint));
  }

  // What is as fast as it gets: the same bytes, from one buffer, and `fsync`.
  void WriteBare() {
    const int file =
        open(bare_path().c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    Require(file >= 0, bare_path());
    EachChunk([&](std::span<std::byte> chunk, int64_t offset) {
      return pwrite(file, chunk.data(), chunk.size(), offset);
    });
    Require(fsync(file) == 0, bare_path());
    close(file);
  }
  void ReadBare() {
    const int file = open(bare_path().c_str(), O_RDONLY);
    Require(file >= 0, bare_path());
    EachChunk([&](std::span<std::byte> chunk, int64_t offset) {
      return pread(file, chunk.data(), chunk.size(), offset);
    });
    close(file);
  }

  // Neither memory nor the disk has anything of what is written or read next.
  void Remove() {
    fs::remove_all(root_ + "/" + kCheckpoint);
    fs::remove(bare_path());
  }
  void Forget() {
    for (const std::string& path :
         {bare_path(),
          directory_.paths().ShardFile({kCheckpoint, kTable, 0, 1})}) {
      const int file = open(path.c_str(), O_RDONLY);
      Require(file >= 0, path);
      Require(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0, path);
      close(file);
    }
  }

 private:
  static std::string MakeDirectory() {
    const char* parent = std::getenv("ROWHOUSE_BENCH_DIRECTORY");
    std::string path =
        absl::StrCat(parent == nullptr ? fs::temp_directory_path().string()
                                       : std::string(parent),
                     "/rowhouse_bench_XXXXXX");
    Require(mkdtemp(path.data()) != nullptr, path);
    return path;
  }
  std::string bare_path() const { return root_ + "/bare"; }

  template <typename Call>
  void EachChunk(Call call) {
    const std::span<std::byte> whole = block_.First(kBlockRows)[0];
    const auto end = static_cast<int64_t>(bytes());
    for (int64_t offset = 0; offset < end;) {
      const auto chunk = whole.first(static_cast<size_t>(
          std::min(static_cast<int64_t>(whole.size()), end - offset)));
      Require(call(chunk, offset) == static_cast<ssize_t>(chunk.size()),
              bare_path());
      offset += static_cast<int64_t>(chunk.size());
    }
  }

  const std::string root_;
  server::CheckpointDirectory directory_;
  const std::vector<server::ColumnSpec> columns_;
  const int64_t row_count_;
  server::RowBuffer block_;
};

// Times `work` and, in turns and unmeasured, `bare`; `prepare` before each.
template <typename Prepare, typename Bare, typename Work>
void TakeTurns(benchmark::State& state, const DiskWork& disk, Prepare prepare,
               Bare bare, Work work) {
  std::vector<double> bare_seconds;
  for (auto _ : state) {
    state.PauseTiming();
    prepare();
    const Clock::time_point start = Clock::now();
    bare();
    bare_seconds.push_back(SecondsSince(start));
    state.ResumeTiming();
    work();
  }
  Report(state, {.bytes = disk.bytes(), .items = disk.rows()},
         disk.bytes() / Quantile(bare_seconds, 0.5));
}

void WriteShard(benchmark::State& state) {
  DiskWork& disk = Kept<DiskWork>();
  TakeTurns(
      state, disk, [&] { disk.Remove(); }, [&] { disk.WriteBare(); },
      [&] { disk.Write(); });
}
BENCHMARK(WriteShard)->Apply(Defaults);

void ReadShard(benchmark::State& state) {
  DiskWork& disk = Kept<DiskWork>();
  disk.Remove();
  disk.Write();
  disk.WriteBare();
  const auto chain = disk.Publish();
  TakeTurns(
      state, disk, [&] { disk.Forget(); }, [&] { disk.ReadBare(); },
      [&] { disk.Read(chain); });
}
BENCHMARK(ReadShard)->Apply(Defaults);

// From memory, where the disk does not hide what checking takes.
void ReadShardFromMemory(benchmark::State& state) {
  DiskWork& disk = Kept<DiskWork>();
  disk.Remove();
  disk.Write();
  disk.WriteBare();
  const auto chain = disk.Publish();
  TakeTurns(
      state, disk, [] {}, [&] { disk.ReadBare(); }, [&] { disk.Read(chain); });
}
BENCHMARK(ReadShardFromMemory)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
