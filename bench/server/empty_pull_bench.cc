/// A pull of no rows over loopback, beside a bare echo: what the path costs
/// before the first byte of a row.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/server/deployment.h"
#include "bench/support/check.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/wire/status.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"
#include "rowhouse/v1/row_service.grpc.pb.h"

namespace rowhouse::bench {
namespace {

// Answers any pull with one empty message, and does nothing else.
class Echo final : public v1::RowService::CallbackService {
 public:
  grpc::ServerWriteReactor<v1::PullRowsResponse>* PullRows(
      grpc::CallbackServerContext* /*context*/,
      const v1::PullRowsRequest* /*request*/) override {
    class Answer final : public grpc::ServerWriteReactor<v1::PullRowsResponse> {
     public:
      Answer() {
        StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
      }
      void OnDone() override { delete this; }

     private:
      v1::PullRowsResponse response_;
    };
    return new Answer();
  }
};

class EmptyPulls {
 public:
  explicit EmptyPulls(Wire wire) {
    client::TableSpec spec;
    spec.row_count = 1;
    spec.dim = 1;
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = 1;
    trainer_ =
        std::move(TheDeployment().MakeTable("empty", spec, wire).front());
    server_ = StubOf(TheDeployment().address(wire));
    int port = 0;
    grpc::ServerBuilder builder;
    std::string address = "127.0.0.1:0";
    if (wire == Wire::kUnixSocket) {
      address = absl::StrCat(TheDeployment().address(wire), "-echo");
    }
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&echo_);
    echo_server_ = builder.BuildAndStart();
    if (wire == Wire::kTcp) address = absl::StrCat("127.0.0.1:", port);
    echo_stub_ = StubOf(address);
    request_.set_table("tables/empty");
  }
  ~EmptyPulls() {
    trainer_ = nullptr;
    TheDeployment().cluster().DeleteTable("empty").IgnoreError();
  }

  absl::Status CallEcho() { return Call(*echo_stub_); }
  absl::Status CallServer() { return Call(*server_); }
  static constexpr std::span<const int64_t> kNoIds = {};
  absl::Status CallLibrary() { return trainer_->Pull(kNoIds, {}).status(); }

 private:
  using Stub = v1::RowService::Stub;

  static std::unique_ptr<Stub> StubOf(const std::string& address) {
    return v1::RowService::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }
  absl::Status Call(Stub& stub) {
    grpc::ClientContext context;
    const auto reader = stub.PullRows(&context, request_);
    v1::PullRowsResponse response;
    while (reader->Read(&response)) {
    }
    return wire::FromGrpc(reader->Finish());
  }

  std::unique_ptr<client::Trainer> trainer_;
  Echo echo_;
  std::unique_ptr<grpc::Server> echo_server_;
  std::unique_ptr<Stub> server_;
  std::unique_ptr<Stub> echo_stub_;
  v1::PullRowsRequest request_;
};

// One call of each in turn, so that all have the same machine: the echo and the
// server through a generated stub, and the server through the library. The
// ceiling is the echo's median; `of_p50`, `of_p99` are ratios to the echo's
// time, so above 1.
void EmptyPullOver(benchmark::State& state, Wire wire) {
  EmptyPulls pulls(wire);
  using Clock = std::chrono::steady_clock;
  const std::array<std::function<absl::Status()>, 3> calls = {
      [&] { return pulls.CallEcho(); }, [&] { return pulls.CallServer(); },
      [&] { return pulls.CallLibrary(); }};
  std::array<std::vector<double>, 3> seconds;
  const int64_t rounds = Size(1000, 10);
  const bool timed = Time(state, [&] {
    for (int64_t i = 0; i < rounds; ++i) {
      for (size_t kind = 0; kind < calls.size(); ++kind) {
        const auto start = Clock::now();
        absl::Status status = calls[kind]();
        const std::chrono::duration<double> took = Clock::now() - start;
        if (!status.ok()) return status;
        seconds[kind].push_back(took.count());
      }
    }
    return absl::OkStatus();
  });
  if (!timed) return;
  for (const auto& [name, share] : {std::pair("p50", 0.5), {"p99", 0.99}}) {
    const double echo = Quantile(seconds[0], share);
    const double stub = Quantile(seconds[1], share);
    const double library = Quantile(seconds[2], share);
    state.counters[absl::StrCat(name, "_us")] = stub * 1e6;
    state.counters[absl::StrCat("echo_", name, "_us")] = echo * 1e6;
    state.counters[absl::StrCat("library_", name, "_us")] = library * 1e6;
    state.counters[absl::StrCat("of_", name)] = stub / echo;
    state.counters[absl::StrCat("library_of_", name)] = library / echo;
  }
  const double ceiling = Quantile(seconds[0], 0.5);
  state.counters["ceiling_us"] = ceiling * 1e6;
  state.counters["of_ceiling"] = ceiling / Quantile(seconds[1], 0.5);
}
void EmptyPull(benchmark::State& state) { EmptyPullOver(state, Wire::kTcp); }
BENCHMARK(EmptyPull)->Apply(Defaults);

void EmptyPullFromSocket(benchmark::State& state) {
  EmptyPullOver(state, Wire::kUnixSocket);
}
BENCHMARK(EmptyPullFromSocket)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
