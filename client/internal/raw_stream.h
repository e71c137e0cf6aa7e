#ifndef ROWHOUSE_CLIENT_INTERNAL_RAW_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_RAW_STREAM_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace rowhouse::client::internal {

/// One call of a method that streams, in messages as they are on the wire; on
/// the caller's thread, which also drives the connection while it waits.
///
/// Thread-compatible.
class RawStream {
 public:
  /// `method`: "/package.Service/Method". `context` must outlive it.
  RawStream(const std::shared_ptr<grpc::Channel>& channel,
            const std::string& method, grpc::ClientContext& context);
  ~RawStream();
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  /// Sends a message, the last one where nothing follows it. False: the call is
  /// over, and `Finish` tells why.
  bool Write(const grpc::ByteBuffer& message);
  bool WriteLast(const grpc::ByteBuffer& message);

  /// Waits for a message. False: there is no further one.
  bool Read(grpc::ByteBuffer& message);

  /// Waits for the end. Called once, after the last `Write`, and `Read` unless
  /// the call is cancelled.
  grpc::Status Finish();

 private:
  // Waits for the operation under way; whether it succeeded.
  bool Await();

  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_RAW_STREAM_H_
