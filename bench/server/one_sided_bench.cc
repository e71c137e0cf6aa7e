/// Rows of another process's table, read in its memory, beside the same gather
/// in this process's own: bf16 rows of 768. On a GPU 393,216 rows at random of
/// 10.6 million, on a CPU 128 MiB of 614 MB.
///
/// A call begins with ids that lie where the backend has them, and ends when
/// the rows are known to be of one event: by the mapping alone, and by the
/// client's `Trainer::Pull`. `bare_ms` is the local gather without
/// waiting after each, so the kernel alone; `local_ms` waits. All by medians of
/// one run, taken in turn.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/server/deployment.h"
#include "bench/support/ceiling.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "client/internal/cluster_core.h"
#include "client/internal/one_sided_channel.h"
#include "client/internal/table_mapping.h"
#include "grpcpp/create_channel.h"
#include "kernels/backend.h"
#include "rowhouse/trainer.h"

namespace rowhouse::bench {
namespace {

using client::internal::TableMapping;
using Clock = std::chrono::steady_clock;

constexpr int64_t kDim = 768;
constexpr int64_t kRowBytes = 2 * kDim;
constexpr int kBatch = 8;  // Local gathers without waiting.

int64_t TableRows() { return Size(OnGpu() ? 10575360 : 400000, 1000); }
int64_t RowsAtOnce() {
  return Size(OnGpu() ? 393216 : (int64_t{128} << 20) / kRowBytes, 100);
}

kernels::Buffer Allocate(int64_t size_bytes) {
  return Check(TheBackend().Allocate(size_bytes));
}

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rows are read here and written there.
void ReportRows(benchmark::State& state) {
  const auto count = static_cast<double>(RowsAtOnce());
  Report(state, {.bytes = 2 * count * kRowBytes, .items = count},
         CopyBytesPerSecond());
}

// A table in a server of its own, the same in this process, and ids.
class Mapped {
 public:
  Mapped()
      : server_("one_sided {}\n"),
        stub_(grpc::CreateChannel(server_.address(),
                                  grpc::InsecureChannelCredentials())),
        ids_(Shuffled(SpreadNumbers(RowsAtOnce(), TableRows(), 1))) {
    client::TableSpec spec;
    spec.row_count = TableRows();
    spec.dim = kDim;
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = RowsAtOnce();
    spec.max_pull_bytes = RowsAtOnce() * kRowBytes;
    trainer_ = std::move(server_.MakeTable("rows", spec).front());
    mapping_ = std::make_unique<TableMapping>(
        stub_, "rows", client::internal::MappingUse::kPull,
        [](std::string_view) {
          return std::shared_ptr<kernels::Backend>(
              std::shared_ptr<kernels::Backend>(), &TheBackend());
        });
    local_.row_count = TableRows();
    local_.dim = kDim;
    weights_ = Allocate(TableRows() * kRowBytes);
    local_.weights = weights_.data();
    states_ = Allocate(TableRows() * int64_t{sizeof(kernels::RowState)});
    local_.states = states_.as<kernels::RowState>();
    const kernels::Initializer uniform = {kernels::Initializer::Kind::kUniform,
                                          1, 0.02F};
    Check(TheBackend().InitializeRows(local_, uniform, /*fresh=*/true));
    const auto ids_bytes = static_cast<int64_t>(ids_.size() * sizeof(int64_t));
    device_ids_ = Allocate(ids_bytes);
    Check(TheBackend().Copy(ids_.data(), device_ids_.data(), ids_bytes));
    out_ = Allocate(RowsAtOnce() * kRowBytes);
    Check(TheBackend().Synchronize());
    OpenWindow();
    list_ = Check(trainer_->PrepareRows(ids_));
  }

  void GatherLocal() {
    Check(TheBackend().GatherRows(local_, slots(), out_.data()));
  }

  // False when the rows had changed.
  bool GatherMapped(const TableMapping::Use& use) {
    Check(use.rows().Gather(slots(), out_.data()));
    return Check(use.rows().Finish()) == epoch_;
  }

  TableMapping::Use Enter() { return Check(mapping_->Enter({})); }

  // Through the library, with ids and rows of the host.
  absl::Status Pull() {
    host_rows_.resize(ids_.size() * kRowBytes);
    return trainer_->Pull(ids_, host_rows_).status();
  }

  // The same with ids that were prepared and rows where the backend has them,
  // as a cache has.
  absl::Status PullPrepared() {
    return trainer_
        ->Pull(list_, {out_.as<std::byte>(), ids_.size() * kRowBytes})
        .status();
  }
  int64_t pull_count() {
    return dynamic_cast<client::internal::OneSidedChannel&>(
               server_.cluster().core()->channel(0))
        .pull_count();
  }

  // What all ways find must be the same rows.
  bool Same() {
    GatherLocal();
    const std::vector<std::byte> local = TakeRows();
    const TableMapping::Use use = Enter();
    if (!GatherMapped(use) || TakeRows() != local) return false;
    Check(PullPrepared());
    return TakeRows() == local;
  }

 private:
  std::span<const int64_t> slots() const {
    return {device_ids_.as<int64_t>(), ids_.size()};
  }

  // What lies in `out_`; clears it.
  std::vector<std::byte> TakeRows() {
    std::vector<std::byte> rows(ids_.size() * kRowBytes);
    Check(TheBackend().Copy(out_.data(), rows.data(), std::ssize(rows)));
    Check(TheBackend().Synchronize());
    const std::vector<std::byte> zeros(rows.size());
    Check(TheBackend().Copy(zeros.data(), out_.data(), std::ssize(zeros)));
    Check(TheBackend().Synchronize());
    return rows;
  }

  void OpenWindow() {
    const TableMapping::Use use = Enter();
    v1::OpenReadWindowRequest request;
    request.set_mapping(use.number());
    grpc::ClientContext context;
    v1::OpenReadWindowResponse response;
    if (!stub_.OpenReadWindow(&context, request, &response).ok()) {
      Check(absl::UnavailableError("no read window"));
    }
    epoch_ = response.epoch();
  }

  Deployment server_;
  v1::TransportService::Stub stub_;
  std::vector<int64_t> ids_;
  std::unique_ptr<client::Trainer> trainer_;
  kernels::RowTable local_;
  kernels::Buffer weights_;
  kernels::Buffer states_;
  kernels::Buffer device_ids_;
  kernels::Buffer out_;
  client::RowList list_;
  std::vector<std::byte> host_rows_;
  int64_t epoch_ = 0;
  std::unique_ptr<TableMapping> mapping_;
};

// Takes `read` in turn with the local gather, without and with waiting.
template <typename Read>
void CompareWithLocal(benchmark::State& state, Mapped& rows, Read read) {
  if (!rows.Same()) return Require(state, false, "all find the same rows");
  std::vector<double> bare;
  std::vector<double> local;
  std::vector<double> mapped;
  bool changed = false;
  for (auto _ : state) {
    state.PauseTiming();
    auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) rows.GatherLocal();
    Check(TheBackend().Synchronize());
    bare.push_back(Seconds(start) / kBatch);
    start = Clock::now();
    rows.GatherLocal();
    Check(TheBackend().Synchronize());
    local.push_back(Seconds(start));
    state.ResumeTiming();
    start = Clock::now();
    changed |= !read();
    mapped.push_back(Seconds(start));
  }
  Require(state, !changed, "the rows stay as they are");
  const double median = Quantile(mapped, 0.5);
  state.counters["mapped_ms"] = median * 1e3;
  state.counters["bare_ms"] = Quantile(bare, 0.5) * 1e3;
  state.counters["local_ms"] = Quantile(local, 0.5) * 1e3;
  state.counters["of_bare"] = median / Quantile(bare, 0.5);
  ReportRows(state);
}

void OneSidedGather(benchmark::State& state) {
  auto& rows = Kept<Mapped>();
  const TableMapping::Use use = rows.Enter();
  CompareWithLocal(state, rows, [&] { return rows.GatherMapped(use); });
}
BENCHMARK(OneSidedGather)->Apply(Defaults);

// The same by `Trainer::Pull`: from the call to rows that are usable.
void OneSidedPullPrepared(benchmark::State& state) {
  auto& rows = Kept<Mapped>();
  const int64_t before = rows.pull_count();
  CompareWithLocal(state, rows, [&] { return rows.PullPrepared().ok(); });
  Require(state, rows.pull_count() - before == state.iterations() + 1,
          "all pulls are one-sided");
}
BENCHMARK(OneSidedPullPrepared)->Apply(Defaults);

void OneSidedPull(benchmark::State& state) {
  auto& rows = Kept<Mapped>();
  Check(rows.Pull());
  const int64_t before = rows.pull_count();
  if (!Time(state, [&] { return rows.Pull(); })) return;
  Require(state, rows.pull_count() - before == state.iterations(),
          "all pulls are one-sided");
  ReportRows(state);
}
BENCHMARK(OneSidedPull)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
