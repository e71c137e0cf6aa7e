#ifndef ROWHOUSE_CLIENT_INTERNAL_TABLE_MAPPING_H_
#define ROWHOUSE_CLIENT_INTERNAL_TABLE_MAPPING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/map_backend.h"
#include "client/internal/mapped_rows.h"
#include "grpcpp/client_context.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/transport_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// What a mapping is for: each kind has an inbox of its own, or none.
enum class MappingUse : uint8_t { kPull = 1, kPush = 2, kHead = 3 };

/// One mapping of one server's shard of a table, and the stream that holds it.
/// A thread of its own waits for the stream's end; then, or when the server
/// asks for it, the memory is unmapped as soon as nobody is at work on it.
///
/// Thread-safe.
class TableMapping {
 public:
  /// Begins to map. `stub` must outlive it.
  TableMapping(v1::TransportService::Stub& stub, std::string table,
               MappingUse use, MapBackend backend);

  /// Unmaps. Nobody may be at work on it.
  ~TableMapping();
  TableMapping(const TableMapping&) = delete;
  TableMapping& operator=(const TableMapping&) = delete;

  /// Keeps the memory mapped while it lives.
  class Use {
   public:
    Use(TableMapping& mapping, MappedRows& rows, int64_t number)
        : mapping_(&mapping), rows_(&rows), number_(number) {}
    Use(Use&& other) noexcept
        : mapping_(std::exchange(other.mapping_, nullptr)),
          rows_(other.rows_),
          number_(other.number_) {}
    Use& operator=(Use&&) = delete;
    ~Use();

    MappedRows& rows() const { return *rows_; }
    int64_t number() const { return number_; }  ///< The server's, of it.

   private:
    TableMapping* mapping_;
    MappedRows* rows_;
    int64_t number_;
  };

  /// Waits, a little at most, until the memory is mapped.
  ///
  /// Errors: why it is not, or not any more.
  absl::StatusOr<Use> Enter(const CallContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Whether it has come to its end, and another one may fare better. What the
  /// server refused, or this process cannot map, stays so.
  bool MayRepeat() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Ends it, as if the stream had broken. Returns at once.
  void Break() { context_.TryCancel(); }

  /// The read window that is known to be open, if any; closed by whoever finds
  /// that it is.
  struct Window {
    int64_t event = 0;
    int64_t epoch = 0;
  };
  std::optional<Window> window() const ABSL_LOCKS_EXCLUDED(mutex_);
  void OpenWindow(const Window& window) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseWindow(int64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Takes the inbox for a part or head call; false while another has it.
  bool TakeInbox() { return !inbox_taken_.exchange(true); }
  void GiveInbox() { inbox_taken_ = false; }

 private:
  enum class State : uint8_t { kOpening, kMapped, kEnded };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status MapAnswer(const v1::MapTableResponse& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Unmap(absl::Status why, bool may_repeat) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

  v1::TransportService::Stub& stub_;
  const std::string table_;
  const MappingUse use_;
  const MapBackend backend_;
  grpc::ClientContext context_;
  std::atomic<bool> inbox_taken_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpening;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  bool may_repeat_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<MappedRows> rows_ ABSL_GUARDED_BY(mutex_);
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Window> window_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_TABLE_MAPPING_H_
