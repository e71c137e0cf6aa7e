#include "client/internal/raw_stream.h"

namespace rowhouse::client::internal {

RawStream::RawStream(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& method, grpc::ClientContext& context)
    : stub_(channel) {
  context.set_initial_metadata_corked(true);  // It goes with the first message.
  call_ = stub_.PrepareCall(&context, method, &queue_);
  call_->StartCall(nullptr);
}

RawStream::~RawStream() {
  queue_.Shutdown();
  Await();
}

bool RawStream::Write(const grpc::ByteBuffer& message) {
  call_->Write(message, nullptr);
  return Await();
}

bool RawStream::WriteLast(const grpc::ByteBuffer& message) {
  call_->WriteLast(message, grpc::WriteOptions(), nullptr);
  return Await();
}

bool RawStream::Read(grpc::ByteBuffer& message) {
  call_->Read(&message, nullptr);
  return Await();
}

grpc::Status RawStream::Finish() {
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Await();
  return status;
}

bool RawStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

}  // namespace rowhouse::client::internal
