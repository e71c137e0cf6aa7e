#include "tests/server/service/raw_call.h"

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/wire/status.h"
#include "tests/server/service/test_server.h"

namespace rowhouse::testing {
namespace {

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Waits for the operation that was started last.
bool Await(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

}  // namespace

absl::StatusOr<std::string> CallRaw(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
    const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(context);
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Await(queue);
  const grpc::Slice slice(request);
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  Await(queue);
  call->WritesDone(nullptr);
  Await(queue);
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  const bool answered = Await(queue);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(queue);
  if (!status.ok()) return wire::FromGrpc(status);
  if (!answered) return absl::InternalError("no answer");
  return ToString(response);
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace rowhouse::testing
