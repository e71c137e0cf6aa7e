#ifndef ROWHOUSE_SERVER_SERVICE_PULL_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_PULL_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/row_service.pb.h"
#include "server/service/active_calls.h"
#include "server/shard/shard.h"
#include "server/staging.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// One PullRows call. While a chunk of rows is being written, the next one is
/// read from the pull into another block, from which gRPC takes it. Deletes
/// itself.
class PullCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  /// `staging` must outlive it.
  PullCall(ActiveCalls& calls, const grpc::CallbackServerContext& context,
           Staging& staging);

  /// Checks the request and opens the pull, or ends the call.
  void Start(const TableRegistry& tables, const grpc::ByteBuffer& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  enum class Cause { kOpened, kRead, kWritten };

  /// What to do next; `finish` excludes the others.
  struct Step {
    bool finish = false;
    std::optional<int64_t> write_chunk;
    std::optional<int64_t> read_chunk;
  };

  absl::Status Open(const TableRegistry& tables,
                    const v1::PullRowsRequest& request);
  void OnOpened(absl::StatusOr<std::unique_ptr<Pull>> pull);

  /// Notes that `cause` is through, with `status`, and does what comes next.
  /// This call must not be touched after it.
  void Advance(Cause cause, absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write(int64_t chunk);
  void Read(int64_t chunk);
  void ReadInto(int64_t chunk, absl::StatusOr<Staging::Block> block);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t RowsBefore(int64_t chunk) const;

  ActiveCall active_;
  Staging& staging_;
  std::string client_;  // Whose room the blocks take.

  // Set by `OnOpened`, before the first `Advance`.
  std::shared_ptr<Pull> pull_;
  int64_t row_count_ = 0;
  int64_t row_bytes_ = 0;
  int64_t rows_per_chunk_ = 0;
  int64_t chunk_count_ = 0;

  // Chunk i is in block i % 2, from the start of its read to that of its write.
  Staging::Block blocks_[2];
  grpc::ByteBuffer message_;  // What is being written.

  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t read_count_ ABSL_GUARDED_BY(mutex_) = 0;   // Chunks read whole.
  int64_t write_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Chunks written.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PULL_CALL_H_
