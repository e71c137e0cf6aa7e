/// Rows of a server on another GPU (`--server-device`), over links and in its
/// memory, beside the same bytes moved bare: bf16 rows of 768. On GPUs 393,216
/// rows at random of 10.6 million, on a CPU, where a socket stands in for NCCL,
/// 16 MiB. Rows end, or begin, in this process's device memory. All by medians
/// of one run, taken in turn. And a head's loss over one server and over two.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/server/deployment.h"
#include "bench/support/ceiling.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/role.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "client/internal/grpc_shard_channel.h"
#include "client/internal/link_channel.h"
#include "client/internal/server_link.h"
#include "client/internal/table_mapping.h"
#include "grpcpp/create_channel.h"
#include "kernels/backend.h"
#include "kernels/peer_link.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"

namespace rowhouse::bench {
namespace {

namespace internal = client::internal;
using Clock = std::chrono::steady_clock;

constexpr int64_t kDim = 768;
constexpr int64_t kRowBytes = 2 * kDim;
constexpr int kBatch = 8;  // Bare gathers without waiting.
constexpr char kTable[] = "rows";
constexpr internal::TrainerSession kTrainer = {0, 1};

int64_t TableRows() { return Size(OnGpu() ? 10575360 : 100000, 1000); }
int64_t RowsAtOnce() {
  return Size(OnGpu() ? 393216 : (int64_t{16} << 20) / kRowBytes, 100);
}
int64_t RowsBytes() { return RowsAtOnce() * kRowBytes; }

double Milliseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

kernels::Buffer Allocate(int64_t size_bytes) {
  return Check(TheBackend().Allocate(size_bytes));
}

std::shared_ptr<kernels::Backend> SharedBackend() {
  return {std::shared_ptr<kernels::Backend>(), &TheBackend()};
}

// The ceiling is the rate of the bare transfer.
void ReportRows(benchmark::State& state, double bare_ms) {
  const auto count = static_cast<double>(RowsAtOnce());
  const double bytes = count * kRowBytes;
  Report(state, {.bytes = bytes, .items = count}, bytes / (bare_ms * 1e-3));
}

// -------------------------------------------------------------------- bare --

// The other end of a bare link: sends, or receives, the same memory again and
// again until it is killed. Arguments: backend, device, id, bytes, whether it
// sends.
void PlayPeer(const std::vector<std::string>& arguments) {
  kernels::BackendOptions options;
  if (arguments[0] == "cuda") options.kind = kernels::BackendKind::kCuda;
  int64_t bytes = 0;
  if (!absl::SimpleAtoi(arguments[1], &options.device_index) ||
      !absl::SimpleAtoi(arguments[3], &bytes)) {
    return;
  }
  const auto backend = Check(kernels::MakeBackend(options));
  const kernels::Buffer memory = Check(backend->Allocate(bytes));
  const auto link = Check(kernels::MakePeerLink(options));
  Check(link->Connect(absl::HexStringToBytes(arguments[2]),
                      kernels::LinkEnd::kSecond,
                      absl::Now() + absl::Seconds(60)));
  absl::Status moved = absl::OkStatus();
  while (moved.ok()) {
    moved = arguments[4] == "sends"
                ? link->Send(memory.data(), bytes, absl::InfiniteFuture())
                : link->Receive(memory.data(), bytes, absl::InfiniteFuture());
  }
}
const Role kPeer("link_peer", &PlayPeer);

// This end of it, with a process of its own at the other.
class BareLink {
 public:
  explicit BareLink(bool peer_sends)
      : peer_sends_(peer_sends),
        link_(Check(kernels::MakePeerLink(TheRun().backend))),
        memory_(Allocate(RowsBytes())) {
    const std::string id = Check(link_->NewId());
    peer_ = Check(ngram_lm::Process::Start(CommandOf(
        "link_peer", {OnGpu() ? "cuda" : "cpu", absl::StrCat(ServerDevice()),
                      absl::BytesToHexString(id), absl::StrCat(RowsBytes()),
                      peer_sends ? "sends" : "receives"})));
    Check(link_->Connect(id, kernels::LinkEnd::kFirst, Limit()));
  }

  double Move() {
    const auto start = Clock::now();
    Check(peer_sends_ ? link_->Receive(memory_.data(), RowsBytes(), Limit())
                      : link_->Send(memory_.data(), RowsBytes(), Limit()));
    Check(link_->Await(link_->posted(), Limit()));
    return Milliseconds(start);
  }

 private:
  static absl::Time Limit() { return absl::Now() + absl::Seconds(60); }

  const bool peer_sends_;
  std::unique_ptr<kernels::PeerLink> link_;
  kernels::Buffer memory_;
  std::unique_ptr<ngram_lm::Process> peer_;
};

// -------------------------------------------------------------------- rows --

// A table in a server of its own, ids, and memory of this process's device.
class PeerRows {
 public:
  PeerRows()
      : server_("one_sided {}\nnccl {}\n"),
        connection_(grpc::CreateChannel(server_.address(),
                                        grpc::InsecureChannelCredentials())),
        stub_(connection_),
        ids_(Shuffled(SpreadNumbers(RowsAtOnce(), TableRows(), 1))),
        memory_(Allocate(RowsBytes())) {
    client::TableSpec spec;
    spec.row_count = TableRows();
    spec.dim = kDim;
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = RowsAtOnce();
    spec.max_pull_bytes = RowsBytes();
    Check(server_.cluster().CreateTable(kTable, spec).status());
    const internal::LinkSettings settings = {
        .backend = [](std::string_view) { return SharedBackend(); },
        .device_index = TheRun().backend.device_index,
        .patience = absl::Seconds(60)};
    channel_ = std::make_unique<internal::LinkChannel>(
        internal::MakeGrpcShardChannel(server_.address(), {connection_}),
        connection_, settings, /*least_row_count=*/0);
    Check(channel_->OpenSession(kTable, kTrainer, /*owner=*/7, {}).status());
    link_ = std::make_unique<internal::ServerLink>(stub_, settings);
    selection_.row_ids = ids_;
    mapping_ = std::make_unique<internal::TableMapping>(
        stub_, kTable, internal::MappingUse::kPull,
        [](std::string_view) { return SharedBackend(); });
    const auto ids_bytes = static_cast<int64_t>(ids_.size() * sizeof(int64_t));
    device_ids_ = Allocate(ids_bytes);
    Check(TheBackend().Copy(ids_.data(), device_ids_.data(), ids_bytes));
    Check(TheBackend().Synchronize());
  }

  // Through the library, by host ids.
  double Pull() {
    const auto start = Clock::now();
    internal::PullCall call;
    call.table = kTable;
    call.row_ids = ids_;
    call.trainer = kTrainer;
    call.row_bytes = kRowBytes;
    call.return_handle = true;
    call.training = true;
    call.landing = memory_.as<std::byte>();
    const internal::PullAnswer answer = Check(
        channel_->Pull(call,
                       [](int64_t, const kernels::HostPieces&) {
                         return absl::InternalError("rows that did not land");
                       },
                       {}));
    handle_ = answer.handle;
    return Milliseconds(start);
  }

  // By the handle of those: from the call to rows that have landed, the ids
  // being known to the server.
  double PullByHandle() {
    const auto start = Clock::now();
    v1::PullLinkRequest request;
    request.set_link(Check(link_->Enter({})));
    request.mutable_pull()->set_table(absl::StrCat("tables/", kTable));
    request.mutable_pull()->mutable_trainer()->set_session(kTrainer.session);
    request.mutable_pull()->set_handle(handle_);
    grpc::ClientContext context;
    v1::PullLinkResponse answer;
    if (!stub_.PullLink(&context, request, &answer).ok()) {
      Check(absl::UnavailableError("no rows by the handle"));
    }
    const auto transfer = Check(link_->Begin(answer.turn(), {}));
    Check(transfer.pieces().ReceiveAt(
        memory_.as<std::byte>(), answer.row_count(), answer.row_bytes(), {}));
    return Milliseconds(start);
  }

  // Rows that were just pulled, as a part, by their handle; then drops it.
  double Push() {
    internal::PushCall call;
    call.table = kTable;
    call.trainer = kTrainer;
    call.event = 1;
    call.dtype = client::DType::kBf16;
    call.selection = &selection_;
    call.handles = {handle_};
    call.rows = memory_.as<std::byte>();
    call.row_bytes = kRowBytes;
    call.message_row_count = 1;
    const auto start = Clock::now();
    Check(channel_->Push(call, {}).status());
    const double taken = Milliseconds(start);
    Check(channel_->Discard(kTable, kTrainer, 1, {}));
    return taken;
  }

  // In the server's memory: with nothing between the kernels, and a call.
  double GatherBare() {
    const internal::TableMapping::Use use = Check(mapping_->Enter({}));
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) Gather(use);
    Check(TheBackend().Synchronize());
    return Milliseconds(start) / kBatch;
  }
  double GatherAndCheck() {
    const internal::TableMapping::Use use = Check(mapping_->Enter({}));
    const auto start = Clock::now();
    Gather(use);
    Check(use.rows().Finish().status());
    return Milliseconds(start);
  }

  std::vector<std::byte> Landed() {
    std::vector<std::byte> rows(static_cast<size_t>(RowsBytes()));
    Check(TheBackend().Copy(memory_.data(), rows.data(), RowsBytes()));
    Check(TheBackend().Synchronize());
    return rows;
  }

  const internal::LinkChannel& channel() const { return *channel_; }

 private:
  void Gather(const internal::TableMapping::Use& use) {
    Check(use.rows().Gather({device_ids_.as<int64_t>(), ids_.size()},
                            memory_.data()));
  }

  Deployment server_;
  std::shared_ptr<grpc::Channel> connection_;
  v1::TransportService::Stub stub_;
  std::vector<int64_t> ids_;
  internal::RowSelection selection_;
  kernels::Buffer memory_;
  kernels::Buffer device_ids_;
  int64_t handle_ = 0;
  std::unique_ptr<internal::LinkChannel> channel_;
  std::unique_ptr<internal::ServerLink> link_;
  std::unique_ptr<internal::TableMapping> mapping_;
};

// Calls take turns with what they are held against.
void PeerGather(benchmark::State& state) {
  auto& rows = Kept<PeerRows>();
  std::vector<double> bare;
  std::vector<double> calls;
  for (auto _ : state) {
    state.PauseTiming();
    bare.push_back(rows.GatherBare());
    state.ResumeTiming();
    calls.push_back(rows.GatherAndCheck());
  }
  const double median = Quantile(bare, 0.5);
  state.counters["bare_ms"] = median;
  state.counters["call_ms"] = Quantile(calls, 0.5);
  state.counters["of_bare"] = median / Quantile(calls, 0.5);
  ReportRows(state, median);
}
BENCHMARK(PeerGather)->Apply(Defaults);

// `of_bare` is that of a pull by handle: gather, transfer and landing.
void LinkPull(benchmark::State& state) {
  auto& rows = Kept<PeerRows>();
  BareLink link(/*peer_sends=*/true);
  rows.Pull();
  const std::vector<std::byte> linked = rows.Landed();
  rows.GatherAndCheck();
  if (rows.Landed() != linked) {
    return Require(state, false, "both paths bring the same rows");
  }
  std::vector<double> bare;
  std::vector<double> calls;
  std::vector<double> by_handle;
  for (auto _ : state) {
    state.PauseTiming();
    bare.push_back(link.Move());
    calls.push_back(rows.Pull());
    state.ResumeTiming();
    by_handle.push_back(rows.PullByHandle());
  }
  Require(state, rows.channel().failed_count() == 0, "no link failed");
  const double median = Quantile(bare, 0.5);
  state.counters["bare_ms"] = median;
  state.counters["by_ids_ms"] = Quantile(calls, 0.5);
  state.counters["by_handle_ms"] = Quantile(by_handle, 0.5);
  state.counters["of_bare"] = median / Quantile(by_handle, 0.5);
  ReportRows(state, median);
}
BENCHMARK(LinkPull)->Apply(Defaults);

// From the call to the receipt, the rows' content taken.
void LinkPush(benchmark::State& state) {
  auto& rows = Kept<PeerRows>();
  BareLink link(/*peer_sends=*/false);
  rows.Pull();
  std::vector<double> bare;
  std::vector<double> calls;
  for (auto _ : state) {
    state.PauseTiming();
    bare.push_back(link.Move());
    state.ResumeTiming();
    calls.push_back(rows.Push());
  }
  Require(state, rows.channel().failed_count() == 0, "no link failed");
  const double median = Quantile(bare, 0.5);
  state.counters["bare_ms"] = median;
  state.counters["push_ms"] = Quantile(calls, 0.5);
  state.counters["of_bare"] = median / Quantile(calls, 0.5);
  ReportRows(state, median);
}
BENCHMARK(LinkPush)->Apply(Defaults);

// ------------------------------------------------------------------ slices --

// A head over servers on the server's device, and on this process's as well.
class Slices {
 public:
  static int64_t TokenCount() { return Size(OnGpu() ? 8192 : 256, 32); }
  static int64_t RowCount() { return Size(OnGpu() ? 128256 : 4096, 128); }
  static int64_t Dim() { return Size(OnGpu() ? 4096 : 768, 64); }

  explicit Slices(int64_t count)
      : servers_("one_sided {}\nnccl {}\n",
                 count == 1 ? std::vector<int>{ServerDevice()}
                            : std::vector<int>{ServerDevice(),
                                               TheRun().backend.device_index}),
        hidden_(static_cast<size_t>(TokenCount() * Dim())),
        gradient_(hidden_.size()),
        targets_(DrawNumbers(Spread::kZipf, TokenCount(), RowCount(), 1)) {
    client::TableSpec spec;
    spec.row_count = RowCount();
    spec.dim = Dim();
    spec.shard_count = static_cast<int32_t>(count);
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = 1;
    spec.dense = client::DenseTableSpec{.max_head_token_count = TokenCount()};
    trainer_ = std::move(servers_.MakeTable("head", spec).front());
    head_ = Check(client::LmHead::Create(*trainer_));
    const std::vector<uint16_t> values = NormalBf16();
    for (size_t i = 0; i < hidden_.size(); ++i) {
      hidden_[i] = values[i % values.size()];
    }
  }

  // Forward and backward, until hidden and weight gradient are formed.
  absl::Status Compute() {
    const auto loss = head_->Forward(
        {.hidden = std::as_bytes(std::span(hidden_)), .targets = targets_},
        {.event = trainer_->next_event()});
    if (!loss.ok()) return loss.status();
    const absl::Status answered =
        (*loss)->Backward(1.0, std::as_writable_bytes(std::span(gradient_)));
    return answered.ok() ? head_->FlushWeightGradient() : answered;
  }
  void EndEvent() {
    const int64_t event = trainer_->next_event();
    Check(trainer_->SealAndCommit(event, client::SkipEvent()));
    Check(trainer_->WaitForEvent(event));
  }

 private:
  Deployment servers_;
  std::vector<uint16_t> hidden_;
  std::vector<uint16_t> gradient_;
  std::vector<int64_t> targets_;
  std::unique_ptr<client::Trainer> trainer_;
  std::unique_ptr<client::LmHead> head_;
};

void LossOverSlices(benchmark::State& state) {
  auto& slices = Kept<Slices>(state.range(0));
  slices.EndEvent();  // Of the time before.
  Check(slices.Compute());
  if (!Time(
          state, [&] { return slices.Compute(); },
          [&] { slices.EndEvent(); })) {
    return;
  }
  const auto tokens = static_cast<double>(Slices::TokenCount());
  Report(state,
         {.flops = 6 * tokens * static_cast<double>(Slices::RowCount()) *
                   static_cast<double>(Slices::Dim()),
          .items = tokens},
         GemmFlopsPerSecond());
}
BENCHMARK(LossOverSlices)->Apply(Defaults)->ArgName("slices")->Arg(1)->Arg(2);

}  // namespace
}  // namespace rowhouse::bench
