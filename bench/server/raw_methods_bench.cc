/// What gRPC's two interfaces for servers give where nothing but bytes is
/// moved: 128 MiB from memory that is there, in messages of 1 MiB that
/// reference it, to a client that drops them. Between them the server's rows
/// chose (server/service/pull_call.h).

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/server/loopback.h"
#include "bench/support/check.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "client/internal/raw_stream.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/wire/status.h"

namespace rowhouse::bench {
namespace {

constexpr size_t kMessageBytes = size_t{1} << 20;

int64_t MessageCount() { return Size(128, 4); }

// One of those that a call sends; all are of the same memory.
const grpc::ByteBuffer& Message() {
  static const std::vector<char> memory(kMessageBytes, 'r');
  static const grpc::ByteBuffer message = [] {
    const grpc::Slice slice(memory.data(), memory.size(),
                            grpc::Slice::STATIC_SLICE);
    return grpc::ByteBuffer(&slice, 1);
  }();
  return message;
}

// Answers any call with all messages, by callbacks.
class CallbackService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    class Answer final : public grpc::ServerGenericBidiReactor {
     public:
      Answer() { StartWrite(&Message()); }
      void OnWriteDone(bool ok) override {
        if (ok && ++sent_ < MessageCount()) return StartWrite(&Message());
        Finish(grpc::Status::OK);
      }
      void OnDone() override { delete this; }

     private:
      int64_t sent_ = 0;
    };
    return new Answer();
  }
};

// The same from completion queues, a thread each.
class QueueService {
 public:
  void Register(grpc::ServerBuilder& builder) {
    builder.RegisterAsyncGenericService(&service_);
    for (auto& queue : queues_) queue = builder.AddCompletionQueue();
  }
  void Start() {
    for (auto& queue : queues_) {
      threads_.emplace_back([this, &queue] { Serve(*queue); });
    }
  }
  void Stop() {
    for (auto& queue : queues_) queue->Shutdown();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  struct Call {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    int64_t sent = 0;
    bool ending = false;
  };

  void Ask(grpc::ServerCompletionQueue& queue) {
    auto* const call = new Call();
    service_.RequestCall(&call->context, &call->stream, &queue, &queue, call);
  }

  void Serve(grpc::ServerCompletionQueue& queue) {
    Ask(queue);
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      auto* const call = static_cast<Call*>(tag);
      if (!ok || call->ending) {
        delete call;
        continue;
      }
      if (call->sent == 0) Ask(queue);
      if (call->sent++ < MessageCount()) {
        call->stream.Write(Message(), call);
      } else {
        call->ending = true;
        call->stream.Finish(grpc::Status::OK, call);
      }
    }
  }

  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queues_[2];
  std::vector<std::thread> threads_;
};

// A server of this process, and a channel to it.
class RawServer {
 public:
  explicit RawServer(bool by_queue) : by_queue_(by_queue) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    if (by_queue_) {
      queue_.Register(builder);
    } else {
      builder.RegisterCallbackGenericService(&callback_);
    }
    server_ = builder.BuildAndStart();
    if (by_queue_) queue_.Start();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
  }
  ~RawServer() {
    server_->Shutdown();
    if (by_queue_) queue_.Stop();
  }

  absl::Status Pull() {
    grpc::ClientContext context;
    client::internal::RawStream stream(channel_, "/bench.Raw/Pull", context);
    const grpc::Slice empty;
    stream.WriteLast(grpc::ByteBuffer(&empty, 1));
    grpc::ByteBuffer message;
    size_t received = 0;
    while (stream.Read(message)) received += message.Length();
    const absl::Status status = wire::FromGrpc(stream.Finish());
    if (!status.ok()) return status;
    const size_t wanted = static_cast<size_t>(MessageCount()) * kMessageBytes;
    if (received == wanted) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(received, " bytes came, not ", wanted));
  }

 private:
  const bool by_queue_;
  CallbackService callback_;
  QueueService queue_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

void RawMessages(benchmark::State& state) {
  RawServer server(state.range(0) != 0);
  Check(server.Pull());
  const double bytes =
      static_cast<double>(MessageCount()) * static_cast<double>(kMessageBytes);
  const double ceiling = LoopbackBytesPerSecond();
  if (!Time(state, [&] { return server.Pull(); })) return;
  Report(state, {.bytes = bytes}, ceiling);
}
BENCHMARK(RawMessages)
    ->Apply(Defaults)
    ->MeasureProcessCPUTime()
    ->ArgName("completion_queue")
    ->Arg(0)
    ->Arg(1);

}  // namespace
}  // namespace rowhouse::bench
